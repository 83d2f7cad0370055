package aggregate

import (
	"cmp"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// distribution is the spans of a merged row by bin. Unlike a drainer's store it never
// collapses: it may be of any mapping.
type distribution struct {
	zeros uint64
	bins  []sketch.Bin // lowest first, each once
}

// add adds bins and returns how many the distribution did not have.
func (d *distribution) add(b *sketch.Bins) (more int) {
	d.zeros += b.Zeros
	for _, bin := range b.List {
		at, found := slices.BinarySearchFunc(d.bins, bin.Index, func(b sketch.Bin, index uint16) int {
			return cmp.Compare(b.Index, index)
		})
		if found {
			d.bins[at].Spans += bin.Spans
			continue
		}
		d.bins = slices.Insert(d.bins, at, bin)
		more++
	}
	return more
}

func (d *distribution) mean(mapping sketch.Mapping) float64 {
	return (&sketch.Bins{Zeros: d.zeros, List: d.bins}).Mean(mapping)
}

func (d *distribution) read(to sketch.Sum, mapping sketch.Mapping) {
	to.AddZeros(d.zeros)
	to.AddBins(mapping, d.bins)
}
