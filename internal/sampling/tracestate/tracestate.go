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

	entry []byte // OpenTelemetry's entry
}

// Read parses a tracestate. If it is malformed, no other field is set.
func Read(text []byte) (s State) {
	if len(text) > maxBytes || !s.readMembers(text) {
		return State{IsMalformed: true}
	}
	return s
}

// readMembers parses the members of a tracestate. It returns false if the list violates W3C's
// syntax or contains two OpenTelemetry entries. An invalid OpenTelemetry entry is ignored.
func (s *State) readMembers(text []byte) bool {
	members, hasEntry := 0, false
	for more := len(text) > 0; more; {
		var member []byte
		member, text, more = bytes.Cut(text, []byte{','})
		if member = bytes.Trim(member, " \t"); len(member) == 0 {
			continue
		}
		key, value, isPair := bytes.Cut(member, []byte{'='})
		if members++; !isPair || members > maxMembers || !isKey(key) || !isValue(value) {
			return false
		}
		if string(key) != "ot" {
			continue
		}
		if hasEntry {
			return false
		}
		if hasEntry = true; !s.readEntry(value) {
			*s = State{}
		}
	}
	return true
}

// readEntry parses OpenTelemetry's entry: pairs of key and value, separated by semicolons.
func (s *State) readEntry(value []byte) bool {
	s.entry = value
	for more := true; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		key, val, isPair := bytes.Cut(pair, []byte{':'})
		if !isPair || !isSubkey(key) || !isSubvalue(val) {
			return false
		}
		switch string(key) {
		case "th":
			v, err := strconv.ParseUint(string(val), 16, 64)
			if err != nil || len(val) > digits || s.HasThreshold {
				return false
			}
			s.Threshold, s.HasThreshold = v<<(4*(digits-len(val))), true
		case "rv":
			v, err := strconv.ParseUint(string(val), 16, 64)
			if err != nil || len(val) != digits || s.HasRandomness {
				return false
			}
			s.Randomness, s.HasRandomness = v, true
		}
	}
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
	return s.HasThreshold && s.Threshold >= threshold && !s.isInconsistent()
}

// isInconsistent reports whether a span with this threshold and randomness would not have been
// sampled.
func (s *State) isInconsistent() bool { return s.HasRandomness && s.Randomness < s.Threshold }

// Rate returns the sampling rate as the agent interprets it: from the threshold, regardless of the
// randomness, or from p in OpenTelemetry's entry, which older samplers write and which means 2^-p.
func (s *State) Rate() (rate float64, ok bool) {
	if s.HasThreshold {
		return float64(Never-s.Threshold) / Never, true
	}
	for value, more := s.entry, s.entry != nil; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		if power, ok := bytes.CutPrefix(pair, []byte("p:")); ok {
			p, err := strconv.ParseUint(string(power), 10, 64)
			return math.Ldexp(1, -int(p)), err == nil && p < notKept
		}
	}
	return 0, false
}

// notKept is the value of p for a span that was not sampled.
const notKept = 63

// AppendWith appends the tracestate in text with another threshold. As W3C requires, the modified
// entry is first, and entries that no longer fit are removed from the end.
func (s *State) AppendWith(dst, text []byte, threshold uint64) []byte {
	start := len(dst)
	dst = append(dst, "ot="...)
	for value, more := s.entry, s.entry != nil; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		isFull := len(dst)-start-len("ot=")+len(pair)+len(";th:")+digits > maxValue
		if !isFull && !bytes.HasPrefix(pair, []byte("th:")) {
			dst = append(append(dst, pair...), ';')
		}
	}
	dst = appendThreshold(append(dst, "th:"...), threshold)
	members := 1
	for more := !s.IsMalformed; more; {
		var member []byte
		member, text, more = bytes.Cut(text, []byte{','})
		if member = bytes.Trim(member, " \t"); len(member) == 0 || bytes.HasPrefix(member, []byte("ot=")) {
			continue
		}
		if members++; members > maxMembers || len(dst)-start+1+len(member) > maxBytes {
			break
		}
		dst = append(append(dst, ','), member...)
	}
	return dst
}

// Limits of a tracestate by W3C, and of OpenTelemetry's entry.
const (
	maxBytes   = 1024
	maxMembers = 32
	maxValue   = 256
)

// isKey reports whether a key is valid according to W3C: a name, or tenant@system.
func isKey(key []byte) bool {
	tenant, system, hasSystem := bytes.Cut(key, []byte{'@'})
	if !hasSystem {
		return isName(key, 256)
	}
	isTenant := len(tenant) > 0 && len(tenant) <= 241 && !isSpecial(tenant[0]) && areAll(tenant, isKeyChar)
	return isTenant && isName(system, 14)
}

// isName reports whether name is valid as a key, or as the system part of a key, with at most limit bytes.
func isName(name []byte, limit int) bool {
	return len(name) > 0 && len(name) <= limit && isLower(name[0]) && areAll(name, isKeyChar)
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

func isLower(c byte) bool   { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool   { return '0' <= c && c <= '9' }
func isSpecial(c byte) bool { return c == '_' || c == '-' || c == '*' || c == '/' }

func isKeyChar(c byte) bool { return isLower(c) || isDigit(c) || isSpecial(c) }

// areAll reports whether all bytes satisfy a condition.
func areAll(text []byte, cond func(byte) bool) bool {
	for _, c := range text {
		if !cond(c) {
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

// Read parses a tracestate. The result is valid as long as text is.
func (m *Memo) Read(text []byte) *State {
	if m.text == nil || !bytes.Equal(m.text, text) {
		m.text, m.state = text, Read(text)
	}
	return &m.state
}

// Forget removes the reference to the text.
func (m *Memo) Forget() { *m = Memo{} }

// Never is the threshold of a trace that is never sampled. Thresholds and randomness have 56 bits.
// A span is sampled if the randomness of its trace is at least the threshold.
const Never = 1 << randomBits

const (
	randomBits = 56
	digits     = randomBits / 4 // in hexadecimal
)

// GrowthBytes is the maximum number of bytes by which another threshold lengthens a tracestate.
const GrowthBytes = len("ot=th:,") + digits

// precision is the number of significant digits of a threshold, after leading digits that are all
// f. More digits would lengthen each tracestate without a noticeable effect.
const precision = 4

// ThresholdOf returns the threshold that samples the given share of all traces.
func ThresholdOf(share float64) uint64 { return thresholdOf(share, precision) }

// thresholdOf returns the threshold of a share, rounded to a number of significant hexadecimal
// digits.
func thresholdOf(share float64, precision int) uint64 {
	switch {
	case share >= 1:
		return 0
	case share < 1.0/Never:
		return Never
	}
	_, exponent := math.Frexp(share)
	precision = min(precision-exponent/4, digits)
	threshold := Never - uint64(math.Round(share*Never))
	if cut := 4 * (digits - precision); cut > 0 {
		threshold = (threshold + 1<<(cut-1)) >> cut << cut
	}
	return threshold
}

// appendThreshold appends a threshold, which is less than Never, without trailing zeros.
func appendThreshold(dst []byte, threshold uint64) []byte {
	for rest := threshold << (64 - randomBits); ; {
		dst = append(dst, "0123456789abcdef"[rest>>60])
		if rest <<= 4; rest == 0 {
			return dst
		}
	}
}
