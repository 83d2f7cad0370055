package sketch

import (
	"math/bits"
	"sync"
)

// Grid maps durations to cells, the units of counting. Durations in one cell are indistinguishable
// to the readers of the counts. If the agent is the only reader, the cells are its bins. The
// buckets of a Histogram have other bounds, and cannot be computed from bins, or vice versa. But
// durations are truncated to 512 values per power of two, so cells that end wherever a bin or a
// bucket does, 64 per power of two, determine both exactly. Cells that also end at the bounds of a
// Classic determine that exactly, too.
//
// A cell's number determines its counter: number%pageCells in page number/pageCells, which has the
// cells of 64 bins. Numbers increase with durations. A page has memory for perPage cells, some of
// which contain no durations. If a store collapses its lowest cells into such a cell, it is read as
// the next lower cell that contains durations.
//
// A Grid replaces a logarithm per span by one lookup. It is immutable.
type Grid struct {
	// cells has the cell of each truncated duration, by stepOf. It has an element for every uint16,
	// so that the compiler can omit the bounds check.
	cells   [1 << 16]uint16
	bins    [allPages * pageCells]uint16 // by cell
	buckets [allPages * pageCells]int16  // by cell
	perPage uint                         // cells per page
}

const (
	pageBins = 64                                  // bins per page
	allPages = (allBins + pageBins - 1) / pageBins // pages for the bins of all durations
	// pageCells is the maximum number of cells per page: the ends of 64 bins, of the 60 buckets in the
	// same range, and of MaxBounds. With few of these bounds, or none, commonCells is enough.
	pageCells   = 256
	commonCells = 128
)

// AgentGrid returns the grid whose cells are the agent's bins. A Histogram counts each bin as the
// duration that represents it in the agent's mapping.
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

// CommonGrid returns the grid whose cells end wherever a bin of the agent or a bucket of a
// Histogram does. A page takes twice as much memory as in the AgentGrid.
var CommonGrid = sync.OnceValue(func() *Grid { return newGrid(nil) })

// GridWith returns the CommonGrid whose cells also end at the bounds of a Classic. If more than
// three bounds are within 64 bins, a factor of 3.6, a page can take four times as much memory as in
// the AgentGrid; the bounds commonly used for metrics are further apart. It returns the error of
// CheckBounds.
func GridWith(bounds []float64) (*Grid, error) {
	if len(bounds) == 0 {
		return CommonGrid(), nil
	}
	if err := CheckBounds(bounds); err != nil {
		return nil, err
	}
	return newGrid(bounds), nil
}

// newGrid returns a grid in which a new cell begins wherever the agent's bin, the bucket of a Histogram
// or the bucket between the given bounds changes. Each page of cells begins with the cell of its first
// bin.
func newGrid(bounds []float64) *Grid {
	g, maxCells := &Grid{}, commonCells
	cell, lastClassic := 0, 0
	for step := range steps {
		value := stepValue(step)
		bin, bucket := uint16(logarithmic.Index(value)), int16(bucketOf(value))
		classic := boundOf(bounds, value)
		pageStart := int(bin) / pageBins * pageCells
		isChanged := bin != g.bins[cell] || bucket != g.buckets[cell] || classic != lastClassic
		if cell < pageStart {
			for ; cell < pageStart; cell++ { // the rest of the previous page contains no durations
				g.bins[cell+1], g.buckets[cell+1] = g.bins[cell], g.buckets[cell]
			}
		} else if step > 0 && isChanged {
			cell++
		}
		g.cells[step], g.bins[cell], g.buckets[cell] = uint16(cell), bin, bucket
		lastClassic = classic
		maxCells = max(maxCells, cell%pageCells+1)
	}
	g.perPage = 1 << bits.Len(uint(maxCells-1)) // a power of two, so that pages fill a chunk
	return g
}

// cellOf returns the cell of a duration other than 0.
func (g *Grid) cellOf(nanoseconds uint64) uint { return uint(g.cells[stepOf(nanoseconds)]) }

// rank returns the position of a cell among all counters of this grid's pages.
func (g *Grid) rank(cell uint) uint { return cell/pageCells*g.perPage + cell%pageCells }

// cellAt returns the cell with the given rank.
func (g *Grid) cellAt(rank uint) uint { return rank/g.perPage*pageCells + rank%g.perPage }
