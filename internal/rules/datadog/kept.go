package datadog

import (
	"strconv"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// keep notes a span of the current trace that was counted last.
func (c *Counter) keep(span int) {
	c.kept = append(c.kept, Kept{
		Batch: int32(c.batch), At: int32(c.batches.Len(c.batch) - 1),
		span: int32(span), group: int32(c.group),
	})
}

// Kept are those of the last body, where the policy asks for the ids of traces. They are good
// until the body is changed.
func (c *Counter) Kept() []Kept { return c.kept }

// IDs are those of a span and its trace, of which the high half is 0 where the tracer has none.
func (c *Counter) IDs(k Kept) (traceHigh, traceLow, span uint64) {
	g := &c.table.Groups[k.group]
	if !g.IsHighRead {
		g.TraceHigh, g.IsHighRead = c.traceHigh(g), true
	}
	return g.TraceHigh, g.TraceLow, c.table.Spans[k.span].ID
}

// highDigits is how many digits the tag has that the older formats write the high half as.
const highDigits = 16

// traceHigh is what the first span of a trace says that has the tag.
func (c *Counter) traceHigh(g *spantable.Group) uint64 {
	for i := range c.table.SpansOf(g) {
		tags := c.table.TagsOf(&c.table.SpansOf(g)[i])
		for j := range tags {
			tag := &tags[j]
			isText := tag.Value == spantable.IsText && tag.Text().Len == highDigits
			if tag.Label != decode.LabelTraceHigh || !isText {
				continue
			}
			if high, err := strconv.ParseUint(c.table.String(tag.Text()), 16, 64); err == nil {
				return high
			}
		}
	}
	return 0
}
