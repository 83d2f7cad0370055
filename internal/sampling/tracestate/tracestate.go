// Package tracestate reads and writes the sampling information in a W3C tracestate: the member with OpenTelemetry's
// key "ot", according to the specifications tracestate-handling and tracestate-probability-sampling.
//
// A span with a 56-bit threshold th was sampled with the probability 1-th/2^56, so it represents the
// inverse number of spans. Its trace was sampled because its randomness is at least the threshold. The randomness is rv
// of the member, or otherwise the lowest 56 bits of the trace ID.
//
// A tracestate that violates W3C's syntax contains no information, and is discarded when it is rewritten,
// as W3C requires; the same applies to an invalid value of the key "ot". A threshold above the randomness is
// ignored, because such a span would not have been sampled. Nothing is allocated. A State refers to the
// text that it was read from.
package tracestate

import (
	"bytes"
	"math"
	"math/bits"
	"strconv"
)

// State is the sampling information of a tracestate.
type State struct {
	IsMalformed   bool // the text violates W3C's syntax
	HasThreshold  bool
	HasRandomness bool
	Threshold     uint64 // th: the span was sampled if the randomness of its trace is at least as high
	Randomness    uint64 // rv: random number of the trace, with 56 bits

	otValue []byte // value of the member with the key "ot"
}

// Read parses a tracestate. If it is malformed, no other field is set.
func Read(text []byte) (s State) {
	if len(text) > maxBytes || !s.readMembers(text) {
		return State{IsMalformed: true}
	}
	return s
}

// readMembers parses a tracestate, such as "ot=th:8,vendor=value", and stores the member with
// OpenTelemetry's key "ot" in s. It ignores this member if its value is invalid. It returns false if
// the tracestate violates W3C's syntax, or has two members with this key.
func (s *State) readMembers(text []byte) bool {
	members := 0
	hasOT := false
	for member := range bytes.SplitSeq(text, []byte{','}) {
		member = bytes.Trim(member, " \t")
		if len(member) == 0 {
			continue
		}
		members++
		key, value, isValid := cutMember(member)
		if !isValid || members > maxMembers {
			return false
		}
		if string(key) != "ot" {
			continue
		}
		if hasOT {
			return false
		}
		hasOT = true
		isOTValue := s.readOTValue(value)
		if !isOTValue {
			*s = State{} // removes what was read before the error
		}
	}
	return true
}

// cutMember returns the key and the value of a member such as "vendor=value". isValid is false if the member
// violates W3C's syntax.
func cutMember(member []byte) (key, value []byte, isValid bool) {
	key, value, isPair := bytes.Cut(member, []byte{'='})
	return key, value, isPair && isKey(key) && isValue(value)
}

// readOTValue parses the value of the tracestate key "ot", such as "th:8;rv:0123456789abcd", and stores the
// threshold (th) and the randomness (rv) in s. It returns false if the value is invalid; then s can contain a part of
// it.
func (s *State) readOTValue(otValue []byte) bool {
	s.otValue = otValue
	for pair := range bytes.SplitSeq(otValue, []byte{';'}) {
		key, value, isPair := bytes.Cut(pair, []byte{':'})
		isValid := isPair && isSubkey(key) && isSubvalue(value)
		if !isValid {
			return false
		}
		switch string(key) {
		case "th":
			if s.HasThreshold || !s.readThreshold(value) {
				return false
			}
		case "rv":
			if s.HasRandomness || !s.readRandomness(value) {
				return false
			}
		}
	}
	return true
}

// readThreshold parses the threshold of a sampler, 14 hexadecimal digits whose trailing zeros can be omitted, and
// stores it in s. It returns false if hex is not such a number.
func (s *State) readThreshold(hex []byte) bool {
	number, err := strconv.ParseUint(string(hex), 16, 64)
	if err != nil || len(hex) > maxDigits {
		return false
	}
	omittedDigits := maxDigits - len(hex)
	s.Threshold = number << (omittedDigits * bitsPerDigit)
	s.HasThreshold = true
	return true
}

// readRandomness parses the random number of a trace, 14 hexadecimal digits, and stores it in s. A sampler compares this
// number with its threshold. readRandomness returns false if hex is not such a number.
func (s *State) readRandomness(hex []byte) bool {
	number, err := strconv.ParseUint(string(hex), 16, 64)
	if err != nil || len(hex) != maxDigits {
		return false
	}
	s.Randomness = number
	s.HasRandomness = true
	return true
}

// Weight returns the number of spans that a span with this tracestate represents.
func (s *State) Weight() float64 {
	if !s.HasThreshold || s.isInconsistent() {
		return 1
	}
	return randomNumbers / float64(randomNumbers-s.Threshold)
}

// HasThresholdAtLeast reports whether the span was sampled with at least the given threshold.
func (s *State) HasThresholdAtLeast(threshold uint64) bool {
	isValid := s.HasThreshold && !s.isInconsistent()
	return isValid && s.Threshold >= threshold
}

// isInconsistent reports whether a span with this threshold and randomness would not have been
// sampled.
func (s *State) isInconsistent() bool { return s.HasRandomness && s.Randomness < s.Threshold }

// Rate returns the sampling rate of the span, computed like in the Datadog agent: 1-threshold/2^56 if
// the tracestate has a threshold. Otherwise it is 2^-n for a pair "p:n" of the tracestate key "ot",
// which older samplers write. ok is false if there is neither, or if n is invalid.
func (s *State) Rate() (rate float64, ok bool) {
	if s.HasThreshold {
		sampledNumbers := randomNumbers - s.Threshold // numbers from the threshold on
		return float64(sampledNumbers) / randomNumbers, true
	}
	for pair := range bytes.SplitSeq(s.otValue, []byte{';'}) {
		decimal, isExponent := bytes.CutPrefix(pair, []byte("p:"))
		if !isExponent {
			continue
		}
		exponent, err := strconv.ParseUint(string(decimal), 10, 64)
		const notSampled = 63 // "p:63" is the pair of a span that was not sampled
		if err != nil || exponent >= notSampled {
			return 0, false
		}
		return math.Ldexp(1, -int(exponent)), true
	}
	return 0, false
}

// WithThreshold returns the tracestate text with another threshold. s must be the result of reading text. The result
// overwrites buffer if it has enough capacity. If text is malformed, the result contains only the threshold. Otherwise,
// members at the end of text are omitted if the result would exceed a limit of W3C.
func (s *State) WithThreshold(buffer, text []byte, threshold uint64) []byte {
	tracestate := append(buffer[:0], "ot="...)  // W3C requires that the changed member comes first
	tracestate = s.appendOtherPairs(tracestate) // none if text is malformed
	tracestate = append(tracestate, "th:"...)
	tracestate = appendThreshold(tracestate, threshold)
	if s.IsMalformed {
		return tracestate
	}
	return appendOtherMembers(tracestate, text)
}

// appendOtherMembers appends the members of text, a valid tracestate, to a new tracestate. Before the call, the new one
// contains only the member with the key "ot", which appendOtherMembers does not copy from text. It also omits members at
// the end of text if the new tracestate would have more than maxMembers members or more than maxBytes bytes.
func appendOtherMembers(tracestate, text []byte) []byte {
	members := 1 // the one with the key "ot"
	for member := range bytes.SplitSeq(text, []byte{','}) {
		member = bytes.Trim(member, " \t")
		if len(member) == 0 || bytes.HasPrefix(member, []byte("ot=")) {
			continue
		}
		members++
		newSize := len(tracestate) + len(",") + len(member)
		if members > maxMembers || newSize > maxBytes {
			break
		}
		tracestate = append(tracestate, ',')
		tracestate = append(tracestate, member...)
	}
	return tracestate
}

// appendOtherPairs appends the pairs of the tracestate key "ot" except for the threshold, each followed
// by a semicolon, such as "rv:0123456789abcd;". It omits pairs that would leave no space for a threshold in a value of
// maxValue bytes.
func (s *State) appendOtherPairs(dst []byte) []byte {
	const maxPairBytes = maxValue - len("th:") - maxDigits
	start := len(dst)
	for pair := range bytes.SplitSeq(s.otValue, []byte{';'}) {
		isThreshold := bytes.HasPrefix(pair, []byte("th:"))
		if isThreshold || len(pair) == 0 {
			continue
		}
		size := len(dst) - start + len(pair) + len(";")
		if size > maxPairBytes {
			continue
		}
		dst = append(dst, pair...)
		dst = append(dst, ';')
	}
	return dst
}

// The maximum length of a tracestate in bytes, of its list of members, and of the value of a member in bytes.
const (
	maxBytes   = 1024
	maxMembers = 32
	maxValue   = 256
)

// The maximum lengths of a key and of its parts in bytes, according to W3C.
const (
	maxKey    = 256
	maxTenant = 241
	maxSystem = 14
)

// isKey reports whether a tracestate key is valid according to W3C: a name like "vendor", or a tenant and a
// system like "tenant@vendor".
func isKey(key []byte) bool {
	tenant, system, hasSystem := bytes.Cut(key, []byte{'@'})
	if !hasSystem {
		return isName(key, maxKey)
	}
	return isTenant(tenant) && isName(system, maxSystem)
}

// isTenant reports whether tenant is valid as the tenant part of a key.
func isTenant(tenant []byte) bool {
	hasValidLength := len(tenant) > 0 && len(tenant) <= maxTenant
	return hasValidLength && isLowerOrDigit(tenant[0]) && areAll(tenant, isKeyChar)
}

// isName reports whether name is valid as a key, or as the system part of a key, with at most limit bytes.
func isName(name []byte, limit int) bool {
	hasValidLength := len(name) > 0 && len(name) <= limit
	return hasValidLength && isLower(name[0]) && areAll(name, isKeyChar)
}

// isValue reports whether the value of a member is valid according to W3C.
func isValue(value []byte) bool {
	return len(value) > 0 && len(value) <= maxValue &&
		areAll(value, func(c byte) bool { return ' ' <= c && c <= '~' && c != ',' && c != '=' })
}

// isSubkey reports whether a key, such as "th", is valid in a pair of the tracestate key "ot".
func isSubkey(key []byte) bool {
	return len(key) > 0 && isLower(key[0]) &&
		areAll(key, func(c byte) bool { return isLower(c) || isDigit(c) })
}

// isSubvalue reports whether a value is valid in a pair of the tracestate key "ot".
func isSubvalue(value []byte) bool {
	return areAll(value, func(c byte) bool {
		return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
	})
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLowerOrDigit(c byte) bool { return isLower(c) || isDigit(c) }

func isKeyChar(c byte) bool {
	return isLowerOrDigit(c) || c == '_' || c == '-' || c == '*' || c == '/'
}

// areAll reports whether all bytes of text satisfy a condition.
func areAll(text []byte, condition func(byte) bool) bool {
	for _, c := range text {
		if !condition(c) {
			return false
		}
	}
	return true
}

// Memo caches the last parsed tracestate, because adjacent spans of one trace have the same.
type Memo struct {
	text  []byte
	state State
}

// Read parses a tracestate, or returns the previous result if text is the same as in the previous call.
// The result is valid until the next call. Memo refers to text, which must not be modified before the next
// call of Forget.
func (m *Memo) Read(text []byte) *State {
	isCached := m.text != nil && bytes.Equal(m.text, text)
	if !isCached {
		m.text = text
		m.state = Read(text)
	}
	return &m.state
}

// Forget removes the reference to the text.
func (m *Memo) Forget() { *m = Memo{} }

// The randomness of a trace is a number of 56 bits. A span is sampled if the randomness of its trace is at least the
// threshold of the sampler.
const (
	randomBits    = 56
	randomNumbers = 1 << randomBits           // count of possible numbers
	bitsPerDigit  = 4                         // of a hexadecimal digit
	maxDigits     = randomBits / bitsPerDigit // of a threshold or randomness
)

// Never is the threshold of a trace that is never sampled. It is higher than every randomness.
const Never = randomNumbers

// GrowthBytes is the maximum number of bytes by which another threshold lengthens a tracestate.
const GrowthBytes = len("ot=th:,") + maxDigits

// precision is the number of significant digits of a threshold, after leading digits that are all
// f. More digits would lengthen each tracestate without a noticeable effect.
const precision = 4

// ThresholdOf returns the threshold that samples the given share of all traces.
func ThresholdOf(share float64) uint64 { return thresholdOf(share, precision) }

// thresholdOf returns the threshold with which a sampler keeps the given share of all traces, from 0 to 1: (1-share)*2^56.
// It rounds the threshold in hexadecimal: all leading digits f and the next precision digits remain, and the digits
// after them become 0.
func thresholdOf(share float64, precision int) uint64 {
	switch {
	case share >= 1:
		return 0
	case share < 1.0/randomNumbers:
		return Never
	}
	sampledNumbers := uint64(math.Round(share * randomNumbers)) // the highest numbers are sampled
	threshold := randomNumbers - sampledNumbers
	zeroDigits := maxDigits - leadingFs(threshold) - precision // digits at the end that rounding makes 0
	if zeroDigits <= 0 {
		return threshold
	}
	unit := uint64(1) << (zeroDigits * bitsPerDigit)
	nearestMultiple := (threshold + unit/2) / unit
	return nearestMultiple * unit
}

// leadingFs returns the number of hexadecimal digits f with which a threshold begins. The threshold must be less than
// Never.
func leadingFs(threshold uint64) int {
	inverted := randomNumbers - 1 - threshold // zeros instead of ones
	leadingOnes := randomBits - bits.Len64(inverted)
	return leadingOnes / bitsPerDigit
}

// appendThreshold appends a sampling threshold in the format of the tracestate, in hexadecimal without trailing zeros. It
// appends "0" for the threshold 0. The threshold must be less than Never.
func appendThreshold(dst []byte, threshold uint64) []byte {
	const hexDigits = "0123456789abcdef"
	if threshold == 0 {
		return append(dst, '0')
	}
	var digits [maxDigits]byte
	for i := maxDigits - 1; i >= 0; i-- {
		digits[i] = hexDigits[threshold%16]
		threshold /= 16
	}
	return append(dst, bytes.TrimRight(digits[:], "0")...)
}
