package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush"
)

// overflowAttributes are those of the series of a resource that counts what finds no room,
// as the OpenTelemetry SDKs have it.
func overflowAttributes() []byte {
	var list attributes
	list.begin()
	list.flag("otel.metric.overflow", true)
	return list.bytes
}

// addUp adds what the cycle counted to the running totals.
func (e *encoder) addUp(sealed *aggregate.Sealed, rows []flush.Row, w window) {
	e.totals.Begin(int64(w.start), int64(w.end))
	for _, g := range e.grouper.group(sealed, rows) {
		total, resource := e.total(rows, g), []byte(e.grouper.resources[g.resource])
		e.outcomes(sealed, rows, g, &total, func(p *point) {
			if p.durations.Spans > 0 || p.calls > 0 {
				e.totals.Add(resource, p.list, p.calls, p.seconds, &p.durations)
			}
		})
	}
}

// writeTotals writes all running totals, those too of series that the cycle has not
// counted: a reader forgets what it is not told of. A request stands for the spans that the
// cycle has added to its series.
func (e *encoder) writeTotals(r *outgoing, rows []flush.Row, w window) {
	left := uint64(0)
	for i := range rows {
		left += rows[i].Spans
	}
	for _, of := range e.totals.Resources() {
		r.of([]byte(of.Encoded))
		for _, s := range of.Series {
			spans := min(e.totals.Added(s), left)
			left -= spans
			p := point{list: []byte(s.Attributes), calls: s.Calls, seconds: s.Seconds, durations: s.Buckets}
			r.add(spans, func() { e.write(&p, window{uint64(s.Start), w.end}) })
		}
	}
	r.spans += left // of tracers whose bins and counts differ
}
