package points

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// overflowAttributes returns the attributes of overflow series.
func overflowAttributes(g *grouper) []byte {
	list := attributes{format: g.buffer.format}
	list.begin()
	g.dialect.overflow(&list)
	return list.bytes
}

// commonResource returns the resource of the overflow series for spans whose own resource exceeds
// the limits, too.
func commonResource(g *grouper) []byte {
	list := attributes{format: g.buffer.format}
	list.begin()
	list.text("service.name", "tracer_blocked_value")
	return list.bytes
}

// Running maintains running totals of the points of a Reader.
type Running struct {
	*totals.Totals
	Slowest map[*totals.Series]exemplars.Exemplar // slowest exemplar of the last cycle
	reader  *Reader
}

// NewRunning returns empty running totals.
func NewRunning(r *Reader, limits totals.Limits) *Running {
	return &Running{
		Totals:  totals.New(limits, overflowAttributes(&r.grouper), commonResource(&r.grouper)),
		Slowest: map[*totals.Series]exemplars.Exemplar{},
		reader:  r,
	}
}

// AddUp adds the counts of a cycle with the given window. It returns the number of spans without a
// series, which should be 0 because every span is part of a point.
func (a *Running) AddUp(c *export.Cycle, start, end int64) (lost uint64) {
	sealed, rows := c.Sealed, c.Rows
	a.Begin(c.Number, c.FirstUnsettled, start, end)
	clear(a.Slowest)
	for _, g := range a.reader.Group(sealed, rows) {
		total, resource := a.reader.Total(rows, g), []byte(a.reader.Resource(g))
		remaining, last := total.Spans, (*totals.Series)(nil)
		a.reader.VisitPoints(sealed, rows, g, &total, func(p *Point) {
			spans := min(p.Durations.Spans, remaining)
			last = a.Add(resource, p.Attributes, totals.Counted{
				Spans: spans, Calls: p.Calls, Errors: p.Errors, Seconds: p.Seconds, Buckets: &p.Durations, Classic: p.Classic,
			})
			remaining -= spans
			if p.Exemplar.Span != 0 {
				a.Slowest[last] = slower(a.Slowest[last], p.Exemplar)
			}
		})
		if last == nil {
			lost += remaining
		} else {
			last.Spans += remaining // tracers can send counts that differ from the sum of their bins
		}
	}
	return lost
}
