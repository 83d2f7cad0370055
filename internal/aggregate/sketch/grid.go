package sketch

import (
	"math/bits"
	"sync"
)

// Grid says into which cells durations are counted: a cell is durations that nobody who
// reads the counts tells apart. With the agent as the only reader cells are its bins.
// A Histogram's buckets have other bounds, and neither follows from the counts of the
// other; but what is counted was truncated to 512 values an octave, so cells that end
// wherever a bin or a bucket does, 64 an octave, give both exactly. Cells that end at the
// bounds of a Classic as well give that exactly too.
//
// A cell's number says where it is counted: in page number/pageCells, which has the cells
// of 64 bins, by counter number%pageCells. Numbers rise with durations. A page takes memory
// for perPage cells, which not all have durations: where a store collapses its lowest cells
// into one that has none, that is read as the last below it that has.
//
// A grid replaces a logarithm a span by one look-up, whatever its cells are. It never
// changes.
type Grid struct {
	// cells are by the values that truncation leaves of durations. It is as long as its
	// index can say, so the compiler leaves the bounds check out.
	cells   [1 << 16]uint16
	bins    [allPages * pageCells]uint16 // by cell
	buckets [allPages * pageCells]int16  // by cell
	perPage uint                         // cells that a page has room for
}

const (
	pageBins = 64                                  // that a page counts
	allPages = (allBins + pageBins - 1) / pageBins // for the bins of all durations
	// pageCells is a page's at most: the ends of 64 bins, of the 60 buckets that are as wide,
	// and of MaxBounds. Without those, or with some, a page takes commonCells.
	pageCells   = 256
	commonCells = 128
)

// AgentGrid has the agent's bins as its cells. A Histogram takes each of them as what the
// agent's mapping says that it stands for.
var AgentGrid = sync.OnceValue(func() *Grid {
	g := &Grid{perPage: pageBins}
	for step := range steps {
		bin := logarithmic.Index(stepValue(step))
		cell := bin/pageBins*pageCells + bin%pageBins
		g.cells[step], g.bins[cell] = uint16(cell), uint16(bin)
		g.buckets[cell] = int16(bucketOf(logarithmic.Value(bin)))
	}
	return g
})

// CommonGrid has cells that end wherever a bin of the agent's or a bucket of a Histogram
// does. A page takes twice the memory of the AgentGrid's.
var CommonGrid = sync.OnceValue(func() *Grid { return gridOf(nil) })

// GridWith is the CommonGrid whose cells end at the bounds of a Classic as well. Where more
// than three of those lie within 64 bins, a factor of 3.6, a page may take four times the
// memory of the AgentGrid's; the bounds that are common in metrics lie further apart. It
// fails as CheckBounds does.
func GridWith(bounds []float64) (*Grid, error) {
	if len(bounds) == 0 {
		return CommonGrid(), nil
	}
	if err := CheckBounds(bounds); err != nil {
		return nil, err
	}
	return gridOf(bounds), nil
}

func gridOf(bounds []float64) *Grid {
	g, most := &Grid{}, commonCells
	cell, before := 0, 0
	for step := range steps {
		value := stepValue(step)
		bin, bucket := uint16(logarithmic.Index(value)), int16(bucketOf(value))
		classic := boundOf(bounds, value)
		if first := int(bin) / pageBins * pageCells; cell < first {
			for ; cell < first; cell++ { // the rest of the page has no durations
				g.bins[cell+1], g.buckets[cell+1] = g.bins[cell], g.buckets[cell]
			}
		} else if step > 0 && (bin != g.bins[cell] || bucket != g.buckets[cell] || classic != before) {
			cell++
		}
		g.cells[step], g.bins[cell], g.buckets[cell] = uint16(cell), bin, bucket
		before, most = classic, max(most, cell%pageCells+1)
	}
	g.perPage = 1 << bits.Len(uint(most-1)) // a chunk has room for a whole number of pages
	return g
}

// cellOf is the cell of a duration that is not 0.
func (g *Grid) cellOf(nanoseconds uint64) uint { return uint(g.cells[stepOf(nanoseconds)]) }

// rank is a cell's place among all that this grid's pages have room for.
func (g *Grid) rank(cell uint) uint { return cell/pageCells*g.perPage + cell%pageCells }

// ranked is the cell of a rank.
func (g *Grid) ranked(rank uint) uint { return rank/g.perPage*pageCells + rank%g.perPage }
