package rules

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
)

// Tags that determine whether a span is counted.
const (
	TagTopLevel       = "_top_level"          // 1 if the agent found that the span is top-level
	TagTracerTopLevel = "_dd.top_level"       // 1 if the tracer found it
	TagMeasured       = "_dd.measured"        // 1 to count the span in any case
	TagPartialVersion = "_dd.partial_version" // 0 or more for a snapshot of an unfinished span
	TagKind           = "span.kind"
)

// Kinds contains the span kinds that the agent counts, unless its /info endpoint returns others.
var Kinds = []string{"client", "consumer", "producer", "server"}

// Eligible reports whether the agent would count the span: it has finished, and it is top-level, measured,
// or of one of the given kinds. kinds are Features.SpanKinds of the daemon, in lower case.
func Eligible(t Tags, kinds []string) bool {
	return (IsTopLevel(t) || isOne(t, TagMeasured) || CountsKind(t.Text(TagKind), kinds)) && !IsPartial(t)
}

// IsTopLevel reports whether the span has a tag that marks it as the first span of a service in its trace.
func IsTopLevel(t Tags) bool { return isOne(t, TagTopLevel) || isOne(t, TagTracerTopLevel) }

// IsPartial reports whether the span is a snapshot of an unfinished span, according to its tag TagPartialVersion.
func IsPartial(t Tags) bool {
	version, ok := t.Number(TagPartialVersion)
	return ok && version >= 0
}

// CountsKind reports whether kinds, which are in lower case, contain the given kind.
func CountsKind(kind string, kinds []string) bool {
	return kind != "" && slices.Contains(kinds, strings.ToLower(kind))
}

// Synthetics reports whether a trace with this origin is from a synthetic test.
func Synthetics(origin string) bool { return strings.HasPrefix(origin, "synthetics") }

// isOne reports whether the tag is the number 1.
func isOne(t Tags, key string) bool {
	n, ok := t.Number(key)
	return ok && n == 1
}

// Link is the position of a span in its trace.
type Link struct {
	Span    uint64
	Parent  uint64 // 0 if the span has no parent
	Service string
}

// TopLevel reports for each span of a trace whether it is top-level. A span is top-level if it has no parent, if its
// parent is not in trace, or if its parent belongs to another service.
func TopLevel(trace []Link) []bool {
	var spans Spans
	spans.Reset(trace)
	topLevel := make([]bool, len(trace))
	for i := range trace {
		topLevel[i] = spans.IsTopLevel(i)
	}
	return topLevel
}

// Spans is an index of the spans of one trace by ID. Reset reuses its memory.
type Spans struct {
	trace []Link
	slots []uint32 // index in trace plus 1; 0 for an empty slot
	mask  uint64
}

// Reset replaces the spans in s with those of a trace. s refers to the slice, so the caller must not modify it before
// the next Reset. If several spans have the same ID, s finds the last one, as the Datadog agent does.
func (s *Spans) Reset(trace []Link) {
	s.trace = trace
	s.clearSlots(len(trace))
	for i := range trace {
		slot := s.slot(trace[i].Span)
		s.slots[slot] = uint32(i) + 1 // 0 would mean that the slot is empty
	}
}

// clearSlots empties the hash table. Its new size is a power of two, and at least twice the number of spans.
func (s *Spans) clearSlots(spans int) {
	size := 16
	for size < 2*spans {
		size *= 2
	}
	if cap(s.slots) < size {
		s.slots = make([]uint32, size)
	}
	s.slots = s.slots[:size]
	clear(s.slots)
	s.mask = uint64(size - 1)
}

// hashSeed is random, so that IDs cannot be chosen to share a slot. Otherwise, indexing a malicious trace
// would take time quadratic in its length.
var hashSeed = [2]uint64{rand.Uint64(), rand.Uint64() | 1}

// slot returns the slot that contains the span with this ID, or the empty slot in which it can be stored.
func (s *Spans) slot(id uint64) uint64 {
	slot := s.hash(id)
	for {
		indexPlus1 := s.slots[slot] // 0 if the slot is empty
		if indexPlus1 == 0 || s.trace[indexPlus1-1].Span == id {
			return slot
		}
		slot = (slot + 1) & s.mask
	}
}

// hash returns the slot at which the search for an ID begins. It multiplies twice, because a single multiplication maps
// IDs with a regular pattern to the same slots for one seed in a hundred.
func (s *Spans) hash(id uint64) uint64 {
	return fold(fold(id^hashSeed[0], hashSeed[1]), 0x9e3779b97f4a7c15) & s.mask
}

// fold returns the upper half of a*b XOR the lower half.
func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

// find returns the index of the span with this ID, or -1 if the trace has no such span.
func (s *Spans) find(id uint64) int {
	return int(s.slots[s.slot(id)]) - 1
}

// IsTopLevel reports whether the span with index i in the trace is top-level: it has no parent, its parent is not in
// the trace, or its parent belongs to another service.
func (s *Spans) IsTopLevel(i int) bool {
	span := &s.trace[i]
	if span.Parent == 0 {
		return true
	}
	parentIndex := s.find(span.Parent)
	isParentInTrace := parentIndex >= 0
	return !isParentInTrace || s.trace[parentIndex].Service != span.Service
}

// Root returns the index of the trace's root, which is the last span without a parent. If each span has a parent, Root
// returns the first span whose parent is not in the trace. If there is no such span either, it returns the last span.
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

// TagSampleRate is the tag of a trace's root with the fraction of traces that the tracer keeps before it
// counts them.
const TagSampleRate = "_sample_rate"

// Weight returns the number of spans that each span of a trace represents, according to the tags of the trace's root.
func Weight(root Tags) float64 { return WeightOf(root.Number(TagSampleRate)) }

// WeightOf returns the number of spans that a span represents at a sample rate, for example 4 at a rate of 0.25. It
// returns 1 if the rate is invalid, or if ok is false because there is no rate.
func WeightOf(rate float64, ok bool) float64 {
	if !ok || rate <= 0 || rate > 1 {
		return 1
	}
	return 1 / rate
}
