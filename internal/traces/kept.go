package traces

import (
	"encoding/binary"
	"strconv"
)

// Kept is a counted span of a trace that sampling keeps: when the agent has taken the body,
// the backend will have it, and somebody can look at it there.
type Kept struct {
	Batch, At     int32 // which of Batches it is in, and which of its spans it is
	record, chunk int32
}

// isKept says whether sampling keeps a trace for certain. Of one that has no priority the
// agent decides, and of what it rejects the agent may keep what has an error, or may not. An
// agent that samples by trace ids whatever tracers say keeps less.
func (t *chunk) isKept() bool { return t.hasPriority && t.priority > 0 }

// traceID is that of a trace, whose low half is 0 where nothing says it.
type traceID struct {
	high, low  uint64
	isHighRead bool // else a tag says it
}

// keep notes a span of the current trace that was counted last.
func (c *Counter) keep(record int) {
	c.kept = append(c.kept, Kept{
		Batch: int32(c.current.number), At: int32(c.current.count - 1), record: int32(record), chunk: int32(c.chunk),
	})
}

// Kept are those of the last body, where the policy asks for the ids of traces. They are good
// until the body is changed.
func (c *Counter) Kept() []Kept { return c.kept }

// IDs are those of a span and its trace, of which the high half is 0 where the tracer has none.
func (c *Counter) IDs(k Kept) (traceHigh, traceLow, span uint64) {
	id := &c.payload.ids[k.chunk]
	if !id.isHighRead {
		id.high, id.isHighRead = c.traceHigh(&c.payload.chunks[k.chunk]), true
	}
	return id.high, id.low, c.payload.records[k.record].id
}

// highDigits is how many digits the tag has that the older formats write the high half as.
const highDigits = 16

// traceHigh is what the first span of a trace says that has the tag.
func (c *Counter) traceHigh(t *chunk) uint64 {
	for i := range c.payload.records[t.first:t.last] {
		rec := &c.payload.records[t.first+i]
		for j := range c.payload.tags[rec.first:rec.last] {
			tag := &c.payload.tags[int(rec.first)+j]
			if tag.label != labelTraceHigh || tag.kind != isText || tag.text().Len != highDigits {
				continue
			}
			high, err := strconv.ParseUint(view(tag.text().Of(c.payload.body)), 16, 64)
			if err == nil {
				return high
			}
		}
	}
	return 0
}

// traceIDV1 reads the id of a trace that is written as one.
func (p *payload) traceIDV1() {
	p.traceID.isHighRead = true
	if id := p.Bin().Of(p.body); len(id) == 16 {
		p.traceID.high, p.traceID.low = binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])
	}
}
