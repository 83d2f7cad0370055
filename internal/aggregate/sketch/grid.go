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
// cells of 64 bins. Numbers increase with durations. A page has memory for cellsPerPage cells, some of
// which contain no durations. If a store collapses its lowest cells into such a cell, it is read as
// the next lower cell that contains durations.
//
// A Grid replaces a logarithm per span by one lookup. It is immutable.
type Grid struct {
	// cells has the cell of each truncated duration, by truncatedIndex. It has an element for every uint16,
	// so that the compiler can omit the bounds check.
	cells        [1 << 16]uint16
	bins         [allPages * pageCells]uint16 // by cell
	buckets      [allPages * pageCells]int16  // by cell
	cellsPerPage uint                         // cells per page
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
	g := &Grid{cellsPerPage: pageBins}
	for index := range truncatedDurations {
		bin := logarithmic.Index(truncatedDuration(index))
		cell := bin/pageBins*pageCells + bin%pageBins
		g.cells[index], g.bins[cell] = uint16(cell), uint16(bin)
		g.buckets[cell] = int16(bucketOf(logarithmic.Value(bin)))
	}
	return g
})

// CommonGrid returns the grid whose cells end wherever a bin of the agent or a bucket of a
// Histogram does. A page takes twice as much memory as in the AgentGrid.
var CommonGrid = sync.OnceValue(func() *Grid { return newGrid(nil) })

// GridWith returns a grid like CommonGrid whose cells, the ranges in which durations are counted, also
// end at the given bounds. It returns an error if CheckBounds rejects the bounds. If many bounds are close
// together, the counts take up to twice as much memory as in a CommonGrid.
func GridWith(bounds []float64) (*Grid, error) {
	if len(bounds) == 0 {
		return CommonGrid(), nil
	}
	if err := CheckBounds(bounds); err != nil {
		return nil, err
	}
	return newGrid(bounds), nil
}

// newGrid divides all durations into cells, the smallest ranges in which they are counted. A new cell
// begins where a bin of the agent, a bucket of a Histogram, or a bucket with the given bounds does. The
// cells of each 64 bins form a page: page p consists of the cells from p*pageCells on.
func newGrid(bounds []float64) *Grid {
	g := &Grid{cellsPerPage: commonCells}
	cell := -1 // cell of the previous duration
	var previous ranges
	for index := range truncatedDurations { // in ascending order
		current := rangesOf(truncatedDuration(index), bounds)
		beginsCell := index == 0 || current != previous
		if beginsCell {
			cell = g.addCell(cell, current)
		}
		g.cells[index] = uint16(cell)
		previous = current
	}
	g.cellsPerPage = nextPowerOfTwo(g.cellsPerPage) // so that pages fill a chunk
	return g
}

// addCell adds a cell for the given ranges, and returns its number. This is the number after the previous cell, or the
// first number of the page for r.bin if the previous cell is in an earlier page.
func (g *Grid) addCell(previousCell int, r ranges) (cell int) {
	page := int(r.bin) / pageBins
	pageStart, pageEnd := page*pageCells, (page+1)*pageCells
	cell = max(previousCell+1, pageStart)
	// Cells that remain unused at the end of a page have the ranges of the last cell in use.
	for i := cell; i < pageEnd; i++ {
		g.bins[i] = r.bin
		g.buckets[i] = r.bucket
	}
	cellsInPage := uint(cell - pageStart + 1)
	g.cellsPerPage = max(g.cellsPerPage, cellsInPage)
	return cell
}

// nextPowerOfTwo returns the lowest power of two that is at least n.
func nextPowerOfTwo(n uint) uint { return 1 << bits.Len(n-1) }

// ranges are the bin and the buckets in which the readers of a grid count a duration.
type ranges struct {
	bin     uint16 // bin of the agent
	bucket  int16  // bucket of a Histogram, which is exponential
	classic int    // bucket of a Classic, a classic histogram
}

// rangesOf returns the ranges in which a duration is counted: its bin in the Datadog agent's sketches, its bucket in an
// exponential histogram, and its bucket in a classic histogram with the given bounds.
func rangesOf(nanoseconds float64, bounds []float64) ranges {
	return ranges{
		bin:     uint16(logarithmic.Index(nanoseconds)),
		bucket:  int16(bucketOf(nanoseconds)),
		classic: boundOf(bounds, nanoseconds),
	}
}

// cellOf returns the cell of a duration other than 0.
func (g *Grid) cellOf(nanoseconds uint64) uint { return uint(g.cells[truncatedIndex(nanoseconds)]) }

// rank returns the position of a cell among the cells of all pages. Unlike the number of the cell, it is not affected
// by the numbers between the end of a page and the next multiple of pageCells.
func (g *Grid) rank(cell uint) uint { return cell/pageCells*g.cellsPerPage + cell%pageCells }

// cellAt returns the cell with the given rank.
func (g *Grid) cellAt(rank uint) uint { return rank/g.cellsPerPage*pageCells + rank%g.cellsPerPage }
