package prometheus

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// keeper keeps the totals, and makes generations of them.
type keeper struct {
	*points.Running
	reader *points.Reader
	end    int64            // of the last cycle, nanoseconds since the Unix epoch
	order  []*totals.Series // all of them, by their labels
	counts totals.Counts    // when order was made
}

func newKeeper(r *points.Reader, limits totals.Limits) *keeper {
	return &keeper{Running: points.NewRunning(r, limits), reader: r}
}

// count adds a cycle. It returns the generation behind it, and the spans that are in no total.
func (k *keeper) count(
	sealed *aggregate.Sealed, rows []flush.Row, slow exemplars.Sealed,
) (generation []*record, lost uint64) {
	k.reader.Exemplars = slow
	start := max(k.end, sealed.Start.UnixNano()) // though the clock be set back
	k.end = max(start+1, sealed.End.UnixNano())
	lost = k.AddUp(sealed, rows, start, k.end)
	if now := k.Counts(); now.Series != k.counts.Series || now.Ended != k.counts.Ended {
		k.sort(now.Series)
	}
	k.counts = k.Counts()
	generation = make([]*record, len(k.order))
	for i, s := range k.order {
		if k.IsCounted(s) {
			s.Note = recordOf(s).next(s, k.end, k.Slowest[s])
		}
		generation[i] = recordOf(s)
	}
	return generation, lost
}

func recordOf(s *totals.Series) *record { return s.Note.(*record) }

// sort makes the order anew. A new series gets a record of its labels alone.
func (k *keeper) sort(series int) {
	k.order = make([]*totals.Series, 0, series)
	for _, of := range k.Resources() {
		for _, s := range of.Series {
			if k.order = append(k.order, s); s.Note != nil {
				continue
			}
			labels := s.Attributes
			if !strings.HasPrefix(labels, of.Encoded) { // an overflow does not say its service
				labels = of.Encoded + labels
			}
			s.Note = &record{labels: labels}
		}
	}
	slices.SortFunc(k.order, func(a, b *totals.Series) int {
		return strings.Compare(recordOf(a).labels, recordOf(b).labels)
	})
}
