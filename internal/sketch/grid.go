package sketch

import "sync"

// Grid says into which cells durations are counted: a cell is durations that nobody who
// reads the counts tells apart. With the agent as the only reader cells are its bins.
// A Histogram's buckets have other bounds, and neither follows from the counts of the
// other; but what is counted was truncated to 512 values an octave, so cells that end
// wherever a bin or a bucket does, 64 an octave, give both exactly.
//
// A cell's number says where it is counted: in page number/pageCells, which has the cells
// of 64 bins, by counter number%pageCells. Numbers rise with durations.
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
	pageBins  = 64                                  // that a page counts
	allPages  = (allBins + pageBins - 1) / pageBins // for the bins of all durations
	pageCells = 128                                 // a page's at most: 64 bins are 59 buckets wide
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
var CommonGrid = sync.OnceValue(func() *Grid {
	g := &Grid{perPage: pageCells}
	cell := 0
	for step := range steps {
		value := stepValue(step)
		bin, bucket := uint16(logarithmic.Index(value)), int16(bucketOf(value))
		if first := int(bin) / pageBins * pageCells; cell < first {
			cell = first
		} else if step > 0 && (bin != g.bins[cell] || bucket != g.buckets[cell]) {
			cell++
		}
		g.cells[step], g.bins[cell], g.buckets[cell] = uint16(cell), bin, bucket
	}
	return g
})

// cellOf is the cell of a duration that is not 0.
func (g *Grid) cellOf(nanoseconds uint64) uint { return uint(g.cells[stepOf(nanoseconds)]) }

// rank is a cell's place among all that this grid's pages have room for.
func (g *Grid) rank(cell uint) uint { return cell/pageCells*g.perPage + cell%pageCells }

// ranked is the cell of a rank.
func (g *Grid) ranked(rank uint) uint { return rank/g.perPage*pageCells + rank%g.perPage }
