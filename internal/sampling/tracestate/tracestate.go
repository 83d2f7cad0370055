// Package tracestate reads and writes the sampling information in a tracestate: OpenTelemetry's entry
// in W3C's list, according to the specifications tracestate-handling and tracestate-probability-sampling.
//
// A span with a 56-bit threshold th was sampled with the probability 1-th/2^56, so it represents the
// inverse number of spans. Its trace was sampled because its randomness is at least the threshold: rv of
// the entry, or otherwise the lowest 56 bits of the trace ID.
//
// A tracestate that violates W3C's syntax contains no information, and is discarded when it is rewritten,
// as W3C requires; the same applies to an invalid OpenTelemetry entry. A threshold above the randomness is
// ignored, because such a span would not have been sampled. Nothing is allocated. A State refers to the
// text that it was read from.
package tracestate

import (
	"bytes"
	"math"
	"strconv"
)

// State is the sampling information of a tracestate.
type State struct {
	IsMalformed   bool
	HasThreshold  bool
	HasRandomness bool
	Threshold     uint64
	Randomness    uint64

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

// readOTValue parses the value of the tracestate key "ot", such as "th:8;rv:0123456789abcd", and stores
// threshold and randomness in s. It returns false if the value is invalid; then s can contain a part of
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

// readThreshold parses a threshold, 1 to 14 hexadecimal digits whose trailing zeros can be omitted, and
// stores it in s. It returns false if it is invalid.
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

// readRandomness parses a randomness, 14 hexadecimal digits, and stores it in s. It returns false if it is
// invalid.
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
	return Never / float64(Never-s.Threshold)
}

// HasAtLeast reports whether the span was sampled with at least the given threshold.
func (s *State) HasAtLeast(threshold uint64) bool {
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
		return float64(Never-s.Threshold) / Never, true
	}
	for pair := range bytes.SplitSeq(s.otValue, []byte{';'}) {
		decimal, isExponent := bytes.CutPrefix(pair, []byte("p:"))
		if !isExponent {
			continue
		}
		exponent, err := strconv.ParseUint(string(decimal), 10, 64)
		if err != nil || exponent >= exponentOfUnsampled {
			return 0, false
		}
		return math.Ldexp(1, -int(exponent)), true
	}
	return 0, false
}

// exponentOfUnsampled is the value of p for a span that was not sampled.
const exponentOfUnsampled = 63

// AppendWith appends the tracestate text with another threshold. s must be the result of reading text. The member with
// the key "ot" comes first, because W3C requires this of the member that was changed last. The last of the other members
// are omitted if there are too many, and all of them if text is malformed.
func (s *State) AppendWith(dst, text []byte, threshold uint64) []byte {
	start := len(dst)
	dst = append(dst, "ot="...)
	dst = s.appendOtherPairs(dst)
	dst = append(dst, "th:"...)
	dst = appendThreshold(dst, threshold)
	if s.IsMalformed {
		return dst
	}
	return appendOtherMembers(dst, start, text)
}

// appendOtherMembers appends the members of the tracestate text, except for the one with the key "ot", to
// dst. dst[start:] is the tracestate so far, with one member. The last members are omitted if there are too
// many or if they are too long.
func appendOtherMembers(dst []byte, start int, text []byte) []byte {
	members := 1
	for member := range bytes.SplitSeq(text, []byte{','}) {
		member = bytes.Trim(member, " \t")
		if len(member) == 0 || bytes.HasPrefix(member, []byte("ot=")) {
			continue
		}
		members++
		size := len(dst) - start + len(",") + len(member)
		if members > maxMembers || size > maxBytes {
			break
		}
		dst = append(dst, ',')
		dst = append(dst, member...)
	}
	return dst
}

// appendOtherPairs appends the pairs of the tracestate key "ot" except for the threshold, each followed
// by a semicolon, such as "rv:0123456789abcd;". It omits pairs if there would be no space left for a
// threshold.
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

// Limits of a tracestate by W3C, and of OpenTelemetry's entry.
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

// isSubkey reports whether a key is valid in OpenTelemetry's entry.
func isSubkey(key []byte) bool {
	return len(key) > 0 && isLower(key[0]) &&
		areAll(key, func(c byte) bool { return isLower(c) || isDigit(c) })
}

// isSubvalue reports whether a value is valid in OpenTelemetry's entry.
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
// The result refers to text. It is valid until the next call, and while text is not modified.
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

// Never is the threshold of a trace that is never sampled. Thresholds and randomness have 56 bits.
// A span is sampled if the randomness of its trace is at least the threshold.
const Never = 1 << randomBits

const (
	randomBits   = 56
	bitsPerDigit = 4                         // of a hexadecimal digit
	maxDigits    = randomBits / bitsPerDigit // of a threshold or randomness
)

// GrowthBytes is the maximum number of bytes by which another threshold lengthens a tracestate.
const GrowthBytes = len("ot=th:,") + maxDigits

// precision is the number of significant digits of a threshold, after leading digits that are all
// f. More digits would lengthen each tracestate without a noticeable effect.
const precision = 4

// ThresholdOf returns the threshold that samples the given share of all traces.
func ThresholdOf(share float64) uint64 { return thresholdOf(share, precision) }

// thresholdOf returns the threshold with which a sampler keeps the given share of all traces, from 0 to 1: (1-share)*2^56.
// It is rounded to the given number of hexadecimal digits after its leading digits f.
func thresholdOf(share float64, precision int) uint64 {
	switch {
	case share >= 1:
		return 0
	case share < 1.0/Never:
		return Never
	}
	threshold := Never - uint64(math.Round(share*Never))
	roundedDigits := maxDigits - leadingFs(share) - precision
	if roundedDigits <= 0 {
		return threshold
	}
	unit := uint64(1) << (roundedDigits * bitsPerDigit)
	nearestMultiple := (threshold + unit/2) / unit
	return nearestMultiple * unit
}

// leadingFs returns the number of hexadecimal digits f with which the threshold for a share begins: none for
// a share of 1/16 or more, one for a share of 1/256 or more, and so on.
func leadingFs(share float64) int {
	_, exponent := math.Frexp(share) // share < 2^exponent
	leadingOnes := -exponent         // bits of the threshold
	return leadingOnes / bitsPerDigit
}

// appendThreshold appends a sampling threshold in the format of the tracestate, in hexadecimal without trailing zeros. It
// appends "0" for the threshold 0. The threshold must be less than Never.
func appendThreshold(dst []byte, threshold uint64) []byte {
	const hexDigits = "0123456789abcdef"
	unit := uint64(Never) // of the last appended digit
	for {
		unit >>= bitsPerDigit
		dst = append(dst, hexDigits[threshold/unit])
		threshold %= unit
		if threshold == 0 {
			return dst
		}
	}
}
