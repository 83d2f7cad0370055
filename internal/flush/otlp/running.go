package otlp

import (
	"iter"
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// overflowAttributes are those of the series of a resource that counts what finds no room,
// as the OpenTelemetry SDKs have it.
// Whoever adds up what several daemons sent tells them apart by the instance, as in any other series.
func overflowAttributes(instance string) []byte {
	var list attributes
	list.begin()
	list.text(instanceName, instance)
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

// running keeps running totals, and writes them.
type running struct {
	totals  *totals.Totals
	slowest map[*totals.Series]exemplars.Exemplar // of the cycle that is being encoded
}

func newRunning(limits totals.Limits, instance string) *running {
	return &running{
		totals:  totals.New(limits, overflowAttributes(instance), commonResource()),
		slowest: map[*totals.Series]exemplars.Exemplar{},
	}
}

// addUp adds what the cycle counted to the running totals. It returns the spans that are
// in no series: a defect of ours, since whatever is counted makes a point.
func (a *running) addUp(r *reader, sealed *aggregate.Sealed, rows []flush.Row, w window) (lost uint64) {
	a.totals.Begin(int64(w.start), int64(w.end))
	clear(a.slowest)
	for _, g := range r.group(sealed, rows) {
		total, resource := r.total(rows, g), []byte(r.resources[g.resource])
		left, last := total.Spans, (*totals.Series)(nil)
		r.outcomes(sealed, rows, g, &total, func(p *point) {
			spans := min(p.durations.Spans, left)
			last = a.totals.Add(resource, p.list, spans, p.calls, p.seconds, &p.durations)
			left -= spans
			if p.exemplar.Span != 0 {
				a.slowest[last] = slower(a.slowest[last], p.exemplar)
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

// write writes all running totals, those too of series that the cycle has not counted: a
// reader forgets what it is not told of. Where it begins is drawn anew, so that of totals
// that together find no room in the queue others do the next time. Spans of those that fit
// in no request are lost too: they will not arrive, so nothing is to wait for them.
func (a *running) write(w *writer, lost uint64) flush.Encoded {
	for of := range rotated(a.totals.Resources()) {
		w.of([]byte(of.Encoded))
		for s := range rotated(of.Series) {
			p := point{[]byte(s.Attributes), s.Calls, s.Seconds, s.Buckets, a.slowest[s]}
			w.write(&p, uint64(s.Start))
			if !w.add() {
				said := &totals.Said{}
				said.Add(s)
				lost += said.Arrive()
				continue
			}
			if w.said == nil {
				w.said = &totals.Said{}
			}
			w.said.Add(s)
		}
	}
	ended, counts := a.totals.Lost(), a.totals.Counts()
	return flush.Encoded{
		Lost: map[flush.Reason]uint64{
			flush.Unencodable: lost, flush.Expired: ended.Idle, flush.QueueFull: ended.PushedOut,
		},
		Totals: flush.TotalsStats{Series: counts.Series, Ended: counts.Ended, Overflowed: counts.Overflowed},
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
