package oteltraces

import "encoding/binary"

// Going is a span that goes on: its batch, its place in that, and the ids by which it is found.
type Going struct {
	Batch, At           int
	TraceHigh, TraceLow uint64
	Span                uint64
}

// GoingOn visits the spans of the last body that go on, by what Measure found where it was
// asked, and that can be found by their ids.
func (c *Counter) GoingOn(yield func(Going) bool) {
	p := &c.payload
	var next [MaxBatches]int
	for i := range p.records {
		rec := &p.records[i]
		g := Going{Batch: p.resources[rec.resource].batch}
		g.At = next[g.Batch]
		next[g.Batch]++
		if rec.fate == ended || rec.id == 0 {
			continue
		}
		g.TraceHigh, g.TraceLow = p.idOf(rec)
		g.Span = binary.BigEndian.Uint64(p.body[rec.id:])
		if g.TraceHigh|g.TraceLow != 0 && g.Span != 0 && !yield(g) {
			return
		}
	}
}
