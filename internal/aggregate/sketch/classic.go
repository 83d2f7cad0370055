package sketch

import (
	"fmt"
	"math"
	"sort"
)

// Classic is a classic histogram of durations: each bucket counts durations above the next lower
// bound, up to and including its own; the last bucket counts durations above all bounds.
//
// For stores that count in a grid with these bounds (GridWith) it is exact for truncated durations.
// Truncation keeps ten bits of a duration and rounds down, so a duration that exceeds a bound by
// less than one in 512 can be counted below it, as in the agent's bins and in a Histogram. If two
// bounds are that close to each other, the bucket between them can be empty.
//
// In any other grid, such as the AgentGrid, a cell can contain a bound. It is counted in the bucket
// of its longest durations. Statistics that tracers have counted are treated as in a Histogram:
// each bin counts as the duration that represents it in its mapping.
//
// A Classic is reused for the next key.
type Classic struct {
	bounds   []float64 // seconds
	counts   []uint64  // by bucket
	mappings mappingCache

	grid    *Grid                       // grid of the stores that were read last
	buckets [allPages * pageCells]uint8 // bucket of each of its cells
}

// NewClassic returns an empty histogram with the given bounds, which CheckBounds accepts. It
// retains bounds.
func NewClassic(bounds []float64) *Classic {
	return &Classic{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// Reset empties the histogram.
func (c *Classic) Reset() { clear(c.counts) }

// Counts returns the number of spans in each bucket. There is one bucket for each bound, and one for longer durations. The
// result is valid until the histogram changes.
func (c *Classic) Counts() []uint64 { return c.counts }

// AddZeros counts spans with a duration of 0.
func (c *Classic) AddZeros(spans uint64) { c.counts[0] += spans }

// AddBins adds spans that a tracer has counted in bins of the mapping m. All spans in a bin count as if
// they had the duration that m assigns to the bin. AddBins panics if m is invalid.
func (c *Classic) AddBins(m Mapping, bins []Bin) {
	indexMapping := c.mappings.indexMappingOf(m)
	for _, bin := range bins {
		nanoseconds := indexMapping.Value(int(bin.Index))
		c.counts[boundOf(c.bounds, nanoseconds)] += bin.Spans
	}
}

// addCells adds the counts of neighboring cells of a grid, the first of which is first.
func (c *Classic) addCells(g *Grid, first uint, counters []uint32) {
	if c.grid != g {
		c.mapCells(g)
	}
	for i, spans := range counters {
		c.counts[c.buckets[first+uint(i)]] += uint64(spans)
	}
}

// mapCells assigns a bucket of the histogram to each cell of g. A cell is the smallest range of durations that g
// distinguishes; its bucket is that of its longest duration. A cell without durations gets the bucket of the next lower
// cell.
func (c *Classic) mapCells(g *Grid) {
	c.grid = g
	clear(c.buckets[:])
	// Durations ascend, so the longest one in a cell is the last to set its bucket.
	for index := range truncatedDurations {
		cell := g.cells[index]
		c.buckets[cell] = uint8(boundOf(c.bounds, truncatedDuration(index)))
	}
	// Cells without durations still have bucket 0. The buckets of the other cells ascend, so max does not change them.
	for cell := 1; cell < len(c.buckets); cell++ {
		c.buckets[cell] = max(c.buckets[cell], c.buckets[cell-1])
	}
}

// MaxBounds is the maximum number of bounds of a Classic.
const MaxBounds = 64

// CheckBounds returns an error if the upper bounds of a Classic, in seconds, are invalid.
func CheckBounds(bounds []float64) error {
	if len(bounds) > MaxBounds {
		return fmt.Errorf("check bounds: %d are too many; use at most %d", len(bounds), MaxBounds)
	}
	for i, bound := range bounds {
		switch {
		case !(bound > 0):
			return fmt.Errorf("check bounds: %v is not positive; use seconds, such as 0.25", bound)
		case math.IsInf(bound, 1):
			return fmt.Errorf("check bounds: the bucket up to %v always exists; remove this bound", bound)
		case i > 0 && bound <= bounds[i-1]:
			return fmt.Errorf("check bounds: %v is not greater than %v; use bounds in increasing order", bound,
				bounds[i-1])
		}
	}
	return nil
}

// boundOf returns the index of the first bound that is at least the given duration. It compares
// seconds, like instrumentation that measures in seconds.
func boundOf(bounds []float64, nanoseconds float64) int {
	return sort.Search(len(bounds), func(i int) bool { return nanoseconds/1e9 <= bounds[i] })
}
