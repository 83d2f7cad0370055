package sketch

import (
	"fmt"
	"math"
	"sort"
)

// Classic is a distribution of durations by classic buckets: each counts what took longer than
// the bound below it and not longer than its own, and the last one what took longer than all.
//
// For stores that count in a grid with these bounds (GridWith) it counts exactly how many
// truncated durations are in each bucket. Truncation leaves ten bits of a duration and rounds
// down, so a duration that is longer than a bound by less than one in 512 can be counted below
// it, as in the agent's bins and a Histogram; and of two bounds that are as near to each other
// the bucket between may stay empty.
//
// In any other grid, such as the AgentGrid, a cell may reach over a bound. It is counted as its
// longest durations are. Statistics that tracers have counted are counted as in a Histogram:
// each bin as the duration that its mapping has it stand for.
//
// It is reused for the next key.
type Classic struct {
	bounds  []float64 // seconds
	counts  []uint64  // by bucket
	mapping lastMapping

	grid    *Grid                       // of the stores that were read last, and
	buckets [allPages * pageCells]uint8 // that its cells are in
}

// NewClassic returns an empty one by bounds that CheckBounds accepts. It keeps them.
func NewClassic(bounds []float64) *Classic {
	return &Classic{bounds: bounds, counts: make([]uint64, len(bounds)+1)}
}

// Reset empties it.
func (c *Classic) Reset() { clear(c.counts) }

// Counts are the spans in each bucket by itself, one more than there are bounds. They are valid
// until it changes.
func (c *Classic) Counts() []uint64 { return c.counts }

// AddZeros counts spans that took no time.
func (c *Classic) AddZeros(spans uint64) { c.counts[0] += spans }

// AddBins counts spans that a tracer has counted by a mapping that the library knows.
func (c *Classic) AddBins(m Mapping, bins []Bin) {
	library := c.mapping.indexesOf(m)
	for _, bin := range bins {
		c.counts[boundOf(c.bounds, library.Value(int(bin.Index)))] += bin.Spans
	}
}

func (c *Classic) addCells(g *Grid, first uint, counters []uint32) {
	if c.grid != g {
		c.place(g)
	}
	for i, spans := range counters {
		c.counts[c.buckets[first+uint(i)]] += uint64(spans)
	}
}

// place finds the bucket of each cell, of which the last step is the longest.
func (c *Classic) place(g *Grid) {
	c.grid = g
	clear(c.buckets[:])
	for step := range steps {
		c.buckets[g.cells[step]] = uint8(boundOf(c.bounds, stepValue(step)))
	}
	for cell := 1; cell < len(c.buckets); cell++ { // those without durations are as the one below
		c.buckets[cell] = max(c.buckets[cell], c.buckets[cell-1])
	}
}

// MaxBounds is how many bounds classic buckets may have.
const MaxBounds = 64

// CheckBounds says what makes upper bounds, in seconds, unusable.
func CheckBounds(bounds []float64) error {
	if len(bounds) > MaxBounds {
		return fmt.Errorf("check bounds: %d are too many; give at most %d", len(bounds), MaxBounds)
	}
	for i, bound := range bounds {
		switch {
		case !(bound > 0):
			return fmt.Errorf("check bounds: %v is not positive; give seconds, such as 0.25", bound)
		case math.IsInf(bound, 1):
			return fmt.Errorf("check bounds: %v has its bucket without being named; leave it out", bound)
		case i > 0 && bound <= bounds[i-1]:
			return fmt.Errorf("check bounds: %v does not come after %v; give them in rising order", bound,
				bounds[i-1])
		}
	}
	return nil
}

// boundOf is the place of the lowest bound that so many nanoseconds are not beyond. It compares
// seconds, as whoever measures in seconds does.
func boundOf(bounds []float64, nanoseconds float64) int {
	return sort.Search(len(bounds), func(i int) bool { return nanoseconds/1e9 <= bounds[i] })
}
