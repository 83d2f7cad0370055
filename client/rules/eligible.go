package rules

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// The tags that decide whether a span is counted.
const (
	TagTopLevel       = "_top_level"          // 1: the agent has determined that it is top-level
	TagTracerTopLevel = "_dd.top_level"       // 1: the tracer has
	TagMeasured       = "_dd.measured"        // 1: always count it
	TagPartialVersion = "_dd.partial_version" // 0 or more: a snapshot of an unfinished span
	TagKind           = "span.kind"
)

// Kinds are the span kinds that the agent counts unless /info says otherwise.
var Kinds = []string{"client", "consumer", "producer", "server"}

// Eligible reports whether the agent would count a span: it is top-level, measured, or of one of
// the kinds, and is finished. kinds are those of the daemon's Features, in lower case.
func Eligible(t Tags, kinds []string) bool {
	return (IsTopLevel(t) || isOne(t, TagMeasured) || CountsKind(t.Text(TagKind), kinds)) && !IsPartial(t)
}

// IsTopLevel reports whether a span was marked as the one through which its trace enters a service.
// See TopLevel.
func IsTopLevel(t Tags) bool { return isOne(t, TagTopLevel) || isOne(t, TagTracerTopLevel) }

// IsPartial reports whether this is a snapshot of an unfinished span.
func IsPartial(t Tags) bool {
	version, ok := t.Number(TagPartialVersion)
	return ok && version >= 0
}

// CountsKind reports whether spans of this kind are counted even if they are neither top-level nor
// measured.
func CountsKind(kind string, kinds []string) bool {
	return kind != "" && slices.Contains(kinds, strings.ToLower(kind))
}

// Synthetics reports whether a trace of this origin comes from a synthetic test.
func Synthetics(origin string) bool { return strings.HasPrefix(origin, "synthetics") }

func isOne(t Tags, key string) bool {
	n, ok := t.Number(key)
	return ok && n == 1
}

// Link is the position of a span in its trace.
type Link struct {
	Span    uint64
	Parent  uint64 // 0 if there is none
	Service string
}

// TopLevel reports, for each span of a trace, whether it is top-level: it has no parent, its parent
// is not in trace, or its parent belongs to another service.
func TopLevel(trace []Link) []bool {
	var index Spans
	index.Reset(trace)
	topLevel := make([]bool, len(trace))
	for i := range trace {
		topLevel[i] = index.IsTopLevel(i)
	}
	return topLevel
}

// Spans is an index of the spans of one trace by ID. Reset reuses its memory.
type Spans struct {
	trace []Link
	slots []uint32 // index in trace plus one; 0 if empty
	mask  uint64
}

// Reset indexes another trace. It retains the slice until the next Reset.
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
		// If two spans have the same ID, the agent uses the later one.
		s.slots[s.slot(trace[i].Span)] = uint32(i) + 1
	}
}

// secret is part of the hash, because a client could otherwise choose IDs that collide and make
// lookups in a trace quadratic.
var secret = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// slot returns the slot that contains the span with an ID, or the empty slot where it belongs.
func (s *Spans) slot(id uint64) uint64 {
	i := s.home(id)
	for s.slots[i] != 0 && s.trace[s.slots[i]-1].Span != id {
		i = (i + 1) & s.mask
	}
	return i
}

// home returns the slot where the search for an ID begins. It needs two multiplications: with one,
// regular IDs collided by the hundreds for one secret in a hundred.
func (s *Spans) home(id uint64) uint64 {
	return fold(fold(id^secret[0], secret[1]), 0x9e3779b97f4a7c15) & s.mask
}

// fold multiplies two words and combines both halves of the product.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// find returns the index of the span with an ID, or -1.
func (s *Spans) find(id uint64) int {
	return int(s.slots[s.slot(id)]) - 1
}

// IsTopLevel reports whether the span with index i is top-level, see TopLevel.
func (s *Spans) IsTopLevel(i int) bool {
	link := &s.trace[i]
	if link.Parent == 0 {
		return true
	}
	parent := s.find(link.Parent)
	return parent < 0 || s.trace[parent].Service != link.Service
}

// Root returns the index of the span that represents the trace: the last one without a parent,
// otherwise the first one whose parent is not in the trace, otherwise the last one. If several
// parents are missing, the agent uses any of these spans.
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

// TagSampleRate is the tag of a trace's root that contains the share of traffic that the tracer
// sampled before counting.
const TagSampleRate = "_sample_rate"

// Weight returns the number of spans that each span of a trace represents, given its root.
func Weight(root Tags) float64 { return WeightOf(root.Number(TagSampleRate)) }

// WeightOf returns the weight for a sample rate, or 1 if the rate is missing or invalid.
func WeightOf(rate float64, ok bool) float64 {
	if !ok || rate <= 0 || rate > 1 {
		return 1
	}
	return 1 / rate
}
