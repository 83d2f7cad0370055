package oteltraces

import (
	"bytes"
	"strconv"
)

// The limits of a tracestate, those of W3C and of OpenTelemetry's entry in it.
const (
	maxState   = 1024
	maxMembers = 32
	maxValue   = 256
)

// tracestate is what one says of sampling.
type tracestate struct {
	isMalformed   bool
	hasThreshold  bool
	hasRandomness bool
	threshold     uint64
	randomness    uint64

	members int // with a key and a value, OpenTelemetry's own among them
	others  int // bytes of those that are not OpenTelemetry's, with a comma before each
	own     []byte
	kept    int // bytes of what own has beside the threshold, with a semicolon behind each
}

// readTracestate reads a tracestate. One that is malformed says nothing else.
func readTracestate(text []byte) (s tracestate) {
	if len(text) > maxState || !s.readMembers(text) {
		return tracestate{isMalformed: true}
	}
	return s
}

func (s *tracestate) readMembers(text []byte) bool {
	for more := len(text) > 0; more; {
		var member []byte
		member, text, more = bytes.Cut(text, []byte{','})
		if member = bytes.Trim(member, " \t"); len(member) == 0 {
			continue
		}
		key, value, isPair := bytes.Cut(member, []byte{'='})
		if s.members++; !isPair || s.members > maxMembers || !isKey(key) || !isValue(value) {
			return false
		}
		if string(key) != "ot" {
			s.others += 1 + len(member)
		} else if s.own != nil || !s.readOwn(value) {
			return false
		}
	}
	return true
}

// readOwn reads OpenTelemetry's entry: keys with values, and semicolons in between.
func (s *tracestate) readOwn(value []byte) bool {
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
			v, ok := readHex(said)
			if !ok || len(said) > digits || s.hasThreshold {
				return false
			}
			s.threshold, s.hasThreshold = v<<(4*(digits-len(said))), true
			continue
		case "rv":
			v, ok := readHex(said)
			if !ok || len(said) != digits || s.hasRandomness {
				return false
			}
			s.randomness, s.hasRandomness = v, true
		}
		s.kept += len(pair) + 1
	}
	return true
}

// isKey says whether a key is one of W3C's: a name, or a name at a system's.
func isKey(key []byte) bool {
	tenant, system, hasSystem := bytes.Cut(key, []byte{'@'})
	if !hasSystem {
		return len(key) > 0 && len(key) <= 256 && isLower(key[0]) && areAll(key, isOfKey)
	}
	return len(tenant) > 0 && len(tenant) <= 241 && (isLower(tenant[0]) || isDigit(tenant[0])) && areAll(tenant, isOfKey) &&
		len(system) > 0 && len(system) <= 14 && isLower(system[0]) && areAll(system, isOfKey)
}

func isValue(value []byte) bool {
	return len(value) > 0 && len(value) <= maxValue &&
		areAll(value, func(c byte) bool { return ' ' <= c && c <= '~' && c != ',' && c != '=' })
}

func isSubkey(key []byte) bool {
	return len(key) > 0 && isLower(key[0]) && areAll(key, func(c byte) bool { return isLower(c) || isDigit(c) })
}

func isSaid(said []byte) bool {
	return areAll(said, func(c byte) bool {
		return isLower(c) || isDigit(c) || 'A' <= c && c <= 'Z' || c == '.' || c == '_' || c == '-'
	})
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isOfKey(c byte) bool {
	return isLower(c) || isDigit(c) || c == '_' || c == '-' || c == '*' || c == '/'
}

func areAll(text []byte, is func(byte) bool) bool {
	for _, c := range text {
		if !is(c) {
			return false
		}
	}
	return true
}

// weight is how many spans one with this tracestate stands for.
func (s *tracestate) weight() float64 {
	if !s.hasThreshold {
		return 1
	}
	return never / float64(never-s.threshold)
}

// power is p of OpenTelemetry's entry, by which older samplers say that one of 2^p was kept.
func (s *tracestate) power() (p int, ok bool) {
	for value, more := s.own, s.own != nil; more; {
		var pair []byte
		pair, value, more = bytes.Cut(value, []byte{';'})
		if said, is := bytes.CutPrefix(pair, []byte("p:")); is {
			p, err := strconv.ParseUint(string(said), 10, 64)
			return int(p), err == nil && p < notKept
		}
	}
	return 0, false
}

// notKept is the power that says that a span was not kept at all.
const notKept = 63

// takes says whether any threshold can be written into it.
func (s *tracestate) takes() bool {
	own := s.kept + len("th:") + digits
	members := s.members
	if s.own == nil {
		members++
	}
	return !s.isMalformed && own <= maxValue && members <= maxMembers && len("ot=")+own+s.others <= maxState
}

// appendWith writes the tracestate, which stands in text, with another threshold. What was
// changed stands first, as W3C wants it.
func (s *tracestate) appendWith(dst, text []byte, threshold uint64) []byte {
	dst = append(dst, "ot="...)
	for value, more := s.own, s.own != nil; more; {
		var pair []byte
		if pair, value, more = bytes.Cut(value, []byte{';'}); !bytes.HasPrefix(pair, []byte("th:")) {
			dst = append(append(dst, pair...), ';')
		}
	}
	dst = appendThreshold(append(dst, "th:"...), threshold)
	for more := true; more; {
		var member []byte
		member, text, more = bytes.Cut(text, []byte{','})
		if member = bytes.Trim(member, " \t"); len(member) > 0 && !bytes.HasPrefix(member, []byte("ot=")) {
			dst = append(append(dst, ','), member...)
		}
	}
	return dst
}

// stateMemo remembers the last tracestate: spans of one trace have one, and stand together.
type stateMemo struct {
	text  []byte
	state tracestate
}

// read reads a tracestate, which is good as long as the body is.
func (m *stateMemo) read(text []byte) *tracestate {
	if m.text == nil || !bytes.Equal(m.text, text) {
		m.text, m.state = text, readTracestate(text)
	}
	return &m.state
}

func (m *stateMemo) forget() { *m = stateMemo{} }
