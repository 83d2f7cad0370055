package daemon

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// gridFor is the cells that durations are counted in for destinations beside the agent. Those have
// histograms, and some have classic buckets, so there are cells that give those exactly too.
func gridFor(exporters []flush.Exporter) (*sketch.Grid, error) {
	if len(exporters) == 0 {
		return sketch.AgentGrid(), nil
	}
	return sketch.GridWith(boundsOf(exporters))
}

// boundsOf are those of the classic buckets of all of them.
func boundsOf(exporters []flush.Exporter) (all []float64) {
	for _, x := range exporters {
		all = append(all, x.Bounds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
