package rules

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// The tags that decide whether a span is counted.
const (
	TagTopLevel       = "_top_level"          // 1: the agent found it to be top-level
	TagTracerTopLevel = "_dd.top_level"       // 1: its tracer did
	TagMeasured       = "_dd.measured"        // 1: count it whatever else it is
	TagPartialVersion = "_dd.partial_version" // 0 or more: a snapshot of a span that still runs
	TagKind           = "span.kind"
)

// Kinds are the span kinds that the agent counts unless /info says otherwise.
var Kinds = []string{"client", "consumer", "producer", "server"}

// Eligible reports whether the agent would count the span: it is top-level,
// measured, or of one of the kinds, and has finished. kinds are those of the
// daemon's Features, in lower case.
func Eligible(t Tags, kinds []string) bool {
	return (IsTopLevel(t) || isOne(t, TagMeasured) || CountsKind(t.Text(TagKind), kinds)) && !IsPartial(t)
}

// IsTopLevel reports whether the span was marked as the one through which its
// trace entered a service. See TopLevel for who marks it.
func IsTopLevel(t Tags) bool { return isOne(t, TagTopLevel) || isOne(t, TagTracerTopLevel) }

// IsPartial reports whether this is a snapshot of a span that still runs.
func IsPartial(t Tags) bool {
	version, ok := t.Number(TagPartialVersion)
	return ok && version >= 0
}

// CountsKind reports whether a span of that kind is counted for it alone.
func CountsKind(kind string, kinds []string) bool {
	return kind != "" && slices.Contains(kinds, strings.ToLower(kind))
}

// Synthetics reports whether a trace of that origin came from a synthetic test.
func Synthetics(origin string) bool { return strings.HasPrefix(origin, "synthetics") }

func isOne(t Tags, key string) bool {
	n, ok := t.Number(key)
	return ok && n == 1
}

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

// TagSampleRate is the tag of a trace's root that says how much of the traffic
// the tracer kept before it counted any.
const TagSampleRate = "_sample_rate"

// Weight is how many spans each span of a trace stands for, by its root.
func Weight(root Tags) float64 { return WeightOf(root.Number(TagSampleRate)) }

// WeightOf is the weight at a sample rate, 1 where there is none or it is none.
func WeightOf(rate float64, ok bool) float64 {
	if !ok || rate <= 0 || rate > 1 {
		return 1
	}
	return 1 / rate
}
