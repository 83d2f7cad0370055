package health

import (
	"cmp"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// shownTracers are those with most spans, where there are more than can be
// shown, and how many were left out. They keep their order, that of their
// connecting: a list that is looked at must stand still.
func shownTracers(tracers []ingest.Tracer) (shown []ingest.Tracer, left int) {
	left = len(tracers) - maxTracers
	if left <= 0 {
		return tracers, 0
	}
	byUse := slices.Clone(tracers)
	slices.SortStableFunc(byUse, func(a, b ingest.Tracer) int { return cmp.Compare(b.Received, a.Received) })
	shown = byUse[:maxTracers]
	slices.SortStableFunc(shown, func(a, b ingest.Tracer) int { return a.Since.Compare(b.Since) })
	return shown, left
}
