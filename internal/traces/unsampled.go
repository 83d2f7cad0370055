package traces

import (
	"math"
	"slices"
)

// Traces that sampling throws away need not leave the pod: once they are counted,
// nobody looks at them again. They are cut out of the body where it lies, and the
// agent is told how many they were, which its samplers want to know.

// traceList is where a body's list of traces lies, so that some can be cut out of it.
type traceList struct {
	at    int // of its header
	first int // of the first trace
	end   int
	count int

	// Of a v1 body, which is a map: where its fields begin, behind strings that were sent
	// ahead, and how many there are without those.
	behind, fields int
}

// begin reads the header of the list.
func (p *payload) begin() int {
	p.list.at = p.At()
	p.list.count = p.Array()
	p.list.first = p.At()
	return p.list.count
}

// noPriority is what two of the formats write where a trace has none: then the agent decides.
const noPriority = math.MinInt8

// isUnsampled says whether a tracer's sampling threw a trace away, and nothing in
// it asks to be kept: an error, a span that was sampled for itself, an event.
func (c *Counter) isUnsampled(t *chunk) bool {
	if !t.hasPriority || t.priority > 0 || t.priority == noPriority || t.first == t.last {
		return false
	}
	for i := range c.payload.records[t.first:t.last] {
		rec := &c.payload.records[t.first+i]
		if rec.failed {
			return false
		}
		for _, tag := range c.payload.tags[rec.first:rec.last] {
			if tag.label == labelSpanSampling || tag.label == labelEventRate {
				return false
			}
		}
	}
	return true
}

// Cut takes the unsampled traces out of the body that was counted last, which is
// written over, and returns what is left and how much is not.
func (c *Counter) Cut(body []byte) (left []byte, traces, spans int) {
	list := c.payload.list
	isUnsampled := func(t chunk) bool { return c.isUnsampled(&t) }
	if list.end == 0 || !slices.ContainsFunc(c.payload.chunks, isUnsampled) {
		return body, 0, 0 // before anything is moved
	}
	if c.payload.format == FormatV1 {
		return c.cutV1(body)
	}
	at := list.first
	for i := range c.payload.chunks {
		t := &c.payload.chunks[i]
		if c.isUnsampled(t) {
			traces++
			spans += t.last - t.first
			continue
		}
		at += copy(body[at:], body[t.at:t.end])
	}
	// Chunks that hold nothing are in no list of ours, and were not kept either.
	setCount(body[list.at:list.first], len(c.payload.chunks)-traces)
	at += copy(body[at:], body[list.end:])
	return body[:at], traces, spans
}

// setCount writes another, smaller count into the header of an array.
func setCount(header []byte, count int) {
	switch len(header) {
	case 1:
		header[0] = 0x90 | byte(count)
	case 3:
		header[1], header[2] = byte(count>>8), byte(count)
	default:
		header[1], header[2], header[3], header[4] = byte(count>>24), byte(count>>16), byte(count>>8), byte(count)
	}
}
