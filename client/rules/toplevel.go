package rules

import (
	"math/bits"
	"math/rand/v2"
)

// Link is a span's place in its trace.
type Link struct {
	Span    uint64
	Parent  uint64 // 0: it has none
	Service string
}

// TopLevel says of each span of a trace whether it is top-level: it has no
// parent, or one that is not in this part of the trace, or one of another
// service.
func TopLevel(trace []Link) []bool {
	var s Spans
	s.Reset(trace)
	top := make([]bool, len(trace))
	for i := range trace {
		top[i] = s.IsTopLevel(i)
	}
	return top
}

// Spans finds the spans of one trace by their id. Its memory is used again by
// the next Reset, so that no trace allocates once there was a large one.
type Spans struct {
	trace []Link
	slots []uint32 // index into trace plus one, 0 for none
	mask  uint64
}

// Reset takes the next trace. It keeps the slice until the Reset after it.
func (s *Spans) Reset(trace []Link) {
	s.trace = trace
	size := 16
	for size < 2*len(trace) {
		size *= 2
	}
	if cap(s.slots) < size {
		s.slots = make([]uint32, size)
	}
	s.slots = s.slots[:size]
	clear(s.slots)
	s.mask = uint64(size - 1)
	for i := range trace {
		// If two spans have the same id, the agent takes the later one.
		s.slots[s.slot(trace[i].Span)] = uint32(i) + 1
	}
}

// secret is in the places of spans, or somebody could make up ids that share one,
// and a search of theirs would cost the square of the trace.
var secret = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// slot is where the span with that id is, or where it belongs.
func (s *Spans) slot(id uint64) uint64 {
	at := s.home(id)
	for s.slots[at] != 0 && s.trace[s.slots[at]-1].Span != id {
		at = (at + 1) & s.mask
	}
	return at
}

// home is where the search for an id begins. Ids with a rhythm keep some of it through one
// product: of one secret in a hundred they shared places by the hundred.
func (s *Spans) home(id uint64) uint64 {
	return fold(fold(id^secret[0], secret[1]), 0x9e3779b97f4a7c15) & s.mask
}

// fold multiplies, and makes one word of the two that this gives.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// find returns the index of the span with that id, -1 for none.
func (s *Spans) find(id uint64) int {
	return int(s.slots[s.slot(id)]) - 1
}

// IsTopLevel says of one span what TopLevel says of all.
func (s *Spans) IsTopLevel(i int) bool {
	link := &s.trace[i]
	if link.Parent == 0 {
		return true
	}
	parent := s.find(link.Parent)
	return parent < 0 || s.trace[parent].Service != link.Service
}

// Root is the index of the span that speaks for the trace: the last one without
// a parent, else one whose parent is not here, else the last. The agent takes any
// where several have lost their parents; this takes the first of them.
func (s *Spans) Root() int {
	for i := len(s.trace) - 1; i >= 0; i-- {
		if s.trace[i].Parent == 0 {
			return i
		}
	}
	for i := range s.trace {
		if s.find(s.trace[i].Parent) < 0 {
			return i
		}
	}
	return len(s.trace) - 1
}
