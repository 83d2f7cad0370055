package otlp

import (
	"iter"
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// overflowAttributes are those of the series of a resource that counts what finds no room,
// as the OpenTelemetry SDKs have it.
func overflowAttributes() []byte {
	var list attributes
	list.begin()
	list.flag("otel.metric.overflow", true)
	return list.bytes
}

// commonResource is that of spans whose own resource finds no room for an overflow either.
func commonResource() []byte {
	var list attributes
	list.begin()
	list.text("service.name", "tracer_blocked_value")
	return list.bytes
}

// addUp adds what the cycle counted to the running totals. It returns the spans that are
// in no series: a defect of ours, since whatever is counted makes a point.
func (e *encoder) addUp(sealed *aggregate.Sealed, rows []flush.Row, w window) (unencodable uint64) {
	e.totals.Begin(int64(w.start), int64(w.end))
	clear(e.ofSeries)
	for _, g := range e.grouper.group(sealed, rows) {
		total, resource := e.total(rows, g), []byte(e.grouper.resources[g.resource])
		left, last := total.Spans, (*totals.Series)(nil)
		e.outcomes(sealed, rows, g, &total, func(p *point) {
			spans := min(p.durations.Spans, left)
			last = e.totals.Add(resource, p.list, spans, p.calls, p.seconds, &p.durations)
			left -= spans
			if p.exemplar.Span != 0 {
				e.ofSeries[last] = slower(e.ofSeries[last], p.exemplar)
			}
		})
		if last == nil {
			unencodable += left
		} else {
			last.Spans += left // of tracers whose bins and counts differ
		}
	}
	return unencodable
}

// writeTotals writes all running totals, those too of series that the cycle has not
// counted: a reader forgets what it is not told of. Where it begins is drawn anew, so that
// of totals that together find no room in the queue others do the next time.
func (e *encoder) writeTotals(r *outgoing, w window) {
	for of := range rotated(e.totals.Resources()) {
		r.of([]byte(of.Encoded))
		for s := range rotated(of.Series) {
			p := point{list: []byte(s.Attributes), calls: s.Calls, seconds: s.Seconds, durations: s.Buckets, exemplar: e.ofSeries[s]}
			r.addTotal(s, func() { e.write(&p, window{uint64(s.Start), w.end}) })
		}
	}
}

// rotated goes through a list from a random place on, and around.
func rotated[T any](list []T) iter.Seq[T] {
	return func(yield func(T) bool) {
		if len(list) == 0 {
			return
		}
		first := rand.IntN(len(list))
		for i := range list {
			if !yield(list[(first+i)%len(list)]) {
				return
			}
		}
	}
}
