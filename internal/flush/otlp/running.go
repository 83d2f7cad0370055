package otlp

import (
	"iter"
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// writeTotals writes all running totals, those too of series that the cycle has not counted: a
// reader forgets what it is not told of. Where it begins is drawn anew, so that of totals
// that together find no room in the queue others do the next time. Spans of those that fit
// in no request are lost too: they will not arrive, so nothing is to wait for them.
func (w *writer) writeTotals(a *points.Running, lost uint64) flush.Encoded {
	for of := range rotated(a.Resources()) {
		w.of([]byte(of.Encoded))
		for s := range rotated(of.Series) {
			p := points.Point{
				Attributes: []byte(s.Attributes), Calls: s.Calls, Seconds: s.Seconds,
				Durations: s.Buckets, Classic: s.Classic,
				Exemplar: a.Slowest[s],
			}
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
	ended, counts := a.Lost(), a.Counts()
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
