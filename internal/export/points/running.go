package points

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// overflowAttributes are those of a resource's overflow series, which counts spans that find no room in a
// series of their own, as in the OpenTelemetry SDKs. It has the daemon's instance, as any other series.
func overflowAttributes(g *grouper) []byte {
	list := attributes{format: g.written.format}
	list.begin()
	list.text(instanceName, g.dialect.instanceID())
	list.flag("otel.metric.overflow", true)
	return list.bytes
}

// commonResource is that of spans whose own resource finds no room for an overflow series either.
func commonResource(g *grouper) []byte {
	list := attributes{format: g.written.format}
	list.begin()
	list.text("service.name", "tracer_blocked_value")
	return list.bytes
}

// Running keeps running totals of the points that a Reader makes.
type Running struct {
	*totals.Totals
	Slowest map[*totals.Series]exemplars.Exemplar // of the last cycle
	reader  *Reader
}

// NewRunning keeps those of a reader.
func NewRunning(r *Reader, limits totals.Limits) *Running {
	return &Running{
		Totals:  totals.New(limits, overflowAttributes(&r.grouper), commonResource(&r.grouper)),
		Slowest: map[*totals.Series]exemplars.Exemplar{},
		reader:  r,
	}
}

// AddUp adds what a cycle with this window counted to the running totals. It returns the spans that are in
// no series: a bug, because everything that is counted makes a point.
func (a *Running) AddUp(c *export.Cycle, start, end int64) (lost uint64) {
	sealed, rows := c.Sealed, c.Rows
	a.Begin(start, end, c.IsSettled)
	clear(a.Slowest)
	for _, g := range a.reader.Group(sealed, rows) {
		total, resource := a.reader.Total(rows, g), []byte(a.reader.Resource(g))
		left, last := total.Spans, (*totals.Series)(nil)
		a.reader.Outcomes(sealed, rows, g, &total, func(p *Point) {
			spans := min(p.Durations.Spans, left)
			last = a.Add(resource, p.Attributes, totals.Counted{
				Spans: spans, Calls: p.Calls, Seconds: p.Seconds, Buckets: &p.Durations, Classic: p.Classic,
			})
			left -= spans
			if p.Exemplar.Span != 0 {
				a.Slowest[last] = slower(a.Slowest[last], p.Exemplar)
			}
		})
		if last == nil {
			lost += left
		} else {
			last.Spans += left // of tracers whose bins and counts differ
		}
	}
	return lost
}
