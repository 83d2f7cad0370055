// Package tracestate reads and writes what a tracestate says of sampling: OpenTelemetry's entry
// in W3C's list, as the specifications tracestate-handling and tracestate-probability-sampling
// have it.
//
// A span with a threshold th of 56 bits was kept with the probability 1-th/2^56, so it stands for
// the inverse of that. Its trace was kept because its randomness is at least the threshold: rv
// of the entry, else the lowest 56 bits of its id.
//
// A tracestate that is not written as W3C has it says nothing, and is discarded where it is written
// anew, as W3C wants it; so is an entry of OpenTelemetry that is not written as that has it. A
// threshold above the randomness beside it is not true: the span would not be there. Nothing is
// allocated, and a State refers to the text that it was read of.
package tracestate

import (
	"bytes"
	"math"
	"strconv"
)

// State is what a tracestate says of sampling.
type State struct {
	IsMalformed   bool
	HasThreshold  bool
	HasRandomness bool
	Threshold     uint64
	Randomness    uint64

	own []byte // OpenTelemetry's entry
}

// Read reads a tracestate. One that is malformed says nothing else.
func Read(text []byte) (s State) {
	if len(text) > maxBytes || !s.readMembers(text) {
		return State{IsMalformed: true}
	}
	return s
}

func (s *State) readMembers(text []byte) bool {
	members, hasOwn := 0, false
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
		if hasOwn {
			return false
		}
		if hasOwn = true; !s.readOwn(value) {
			*s = State{}
		}
	}
	return true
}

// readOwn reads OpenTelemetry's entry: keys with values, and semicolons in between.
func (s *State) readOwn(value []byte) bool {
	s.own = value
	for more := true; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		key, said, isPair := bytes.Cut(pair, []byte{':'})
		if !isPair || !isSubkey(key) || !isSaid(said) {
			return false
		}
		switch string(key) {
		case "th":
			v, err := strconv.ParseUint(string(said), 16, 64)
			if err != nil || len(said) > digits || s.HasThreshold {
				return false
			}
			s.Threshold, s.HasThreshold = v<<(4*(digits-len(said))), true
		case "rv":
			v, err := strconv.ParseUint(string(said), 16, 64)
			if err != nil || len(said) != digits || s.HasRandomness {
				return false
			}
			s.Randomness, s.HasRandomness = v, true
		}
	}
	return true
}

// Weight is how many spans one with this tracestate stands for.
func (s *State) Weight() float64 {
	if !s.HasThreshold || s.isUntrue() {
		return 1
	}
	return Never / float64(Never-s.Threshold)
}

// HasAtLeast says whether a span was kept by a threshold that is as high.
func (s *State) HasAtLeast(threshold uint64) bool {
	return s.HasThreshold && s.Threshold >= threshold && !s.isUntrue()
}

// isUntrue says whether the span would not be there if its threshold were true.
func (s *State) isUntrue() bool { return s.HasRandomness && s.Randomness < s.Threshold }

// Rate is the share of spans that were kept, as the agent reads it: by the threshold, whatever the
// randomness, or as older samplers say it, by p of OpenTelemetry's entry, one of 2^p.
func (s *State) Rate() (rate float64, ok bool) {
	if s.HasThreshold {
		return float64(Never-s.Threshold) / Never, true
	}
	for value, more := s.own, s.own != nil; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		if said, is := bytes.CutPrefix(pair, []byte("p:")); is {
			p, err := strconv.ParseUint(string(said), 10, 64)
			return math.Ldexp(1, -int(p)), err == nil && p < notKept
		}
	}
	return 0, false
}

// notKept is the power that says that a span was not kept at all.
const notKept = 63

// AppendWith writes the tracestate, which stands in text, with another threshold. What was
// changed stands first, as W3C wants it, and what finds no room behind it ends, the last first.
func (s *State) AppendWith(dst, text []byte, threshold uint64) []byte {
	begin := len(dst)
	dst = append(dst, "ot="...)
	for value, more := s.own, s.own != nil; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		isFull := len(dst)-begin-len("ot=")+len(pair)+len(";th:")+digits > maxValue
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
		if members++; members > maxMembers || len(dst)-begin+1+len(member) > maxBytes {
			break
		}
		dst = append(append(dst, ','), member...)
	}
	return dst
}

// The limits of a tracestate, those of W3C and of OpenTelemetry's entry in it.
const (
	maxBytes   = 1024
	maxMembers = 32
	maxValue   = 256
)

// isKey says whether a key is one of W3C's: a name, or a name at a system's.
func isKey(key []byte) bool {
	tenant, system, hasSystem := bytes.Cut(key, []byte{'@'})
	if !hasSystem {
		return isName(key, 256)
	}
	isTenant := len(tenant) > 0 && len(tenant) <= 241 && !isMark(tenant[0]) && areAll(tenant, isOfKey)
	return isTenant && isName(system, 14)
}

func isName(name []byte, most int) bool {
	return len(name) > 0 && len(name) <= most && isLower(name[0]) && areAll(name, isOfKey)
}

func isValue(value []byte) bool {
	return len(value) > 0 && len(value) <= maxValue &&
		areAll(value, func(c byte) bool { return ' ' <= c && c <= '~' && c != ',' && c != '=' })
}

// isSubkey says whether a key is one of OpenTelemetry's entry.
func isSubkey(key []byte) bool {
	return len(key) > 0 && isLower(key[0]) &&
		areAll(key, func(c byte) bool { return isLower(c) || isDigit(c) })
}

// isSaid says whether a value is one of OpenTelemetry's entry.
func isSaid(said []byte) bool {
	return areAll(said, func(c byte) bool {
		return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
	})
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isMark(c byte) bool  { return c == '_' || c == '-' || c == '*' || c == '/' }

func isOfKey(c byte) bool { return isLower(c) || isDigit(c) || isMark(c) }

func areAll(text []byte, is func(byte) bool) bool {
	for _, c := range text {
		if !is(c) {
			return false
		}
	}
	return true
}

// Memo remembers the last tracestate that was read: spans of one trace have one, and stand
// together.
type Memo struct {
	text  []byte
	state State
}

// Read reads a tracestate, which is good as long as its text is.
func (m *Memo) Read(text []byte) *State {
	if m.text == nil || !bytes.Equal(m.text, text) {
		m.text, m.state = text, Read(text)
	}
	return &m.state
}

// Forget lets go of the text.
func (m *Memo) Forget() { *m = Memo{} }

// Never is the threshold of what is never kept. Thresholds and randomness have 56 bits, and a
// span is kept where its trace's randomness is not less than the threshold.
const Never = 1 << randomBits

const (
	randomBits = 56
	digits     = randomBits / 4 // in hexadecimal
)

// GrowthBytes is by how much a tracestate may become longer with another threshold.
const GrowthBytes = len("ot=th:,") + digits

// precision is how many digits a threshold has behind those that are all f. More would make a
// share more exact than anybody can tell, and each tracestate longer.
const precision = 4

// ThresholdOf is the threshold by which a share of all traces is kept.
func ThresholdOf(share float64) uint64 { return thresholdOf(share, precision) }

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

// appendThreshold writes a threshold, below Never, without the zeros at its end.
func appendThreshold(dst []byte, threshold uint64) []byte {
	for left := threshold << (64 - randomBits); ; {
		dst = append(dst, "0123456789abcdef"[left>>60])
		if left <<= 4; left == 0 {
			return dst
		}
	}
}
