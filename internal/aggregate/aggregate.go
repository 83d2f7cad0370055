package aggregate

import (
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Counts is what is counted of a key besides its durations' distribution.
//
// The weighted ones are float64, as the agent's are: exact for whole numbers up
// to 2^53, fractional where a weight is, and unable to wrap around. What is
// larger than a payload can say is held at the largest number that it can.
type Counts struct {
	Spans    uint64  // snapshots, unweighted: the unit of the books
	Hits     float64 // weighted, as are the three below
	Errors   float64
	TopLevel float64
	Duration float64 // nanoseconds, not truncated
}

// Add adds what was counted of the same key elsewhere.
func (c *Counts) Add(other *Counts) {
	c.Spans += other.Spans
	c.Hits += other.Hits
	c.Errors += other.Errors
	c.TopLevel += other.TopLevel
	c.Duration += other.Duration
}

// count counts one snapshot.
func (c *Counts) count(s *Slot) {
	c.Spans++
	c.Hits += s.Weight
	c.Duration += float64(s.Duration) * s.Weight
	if s.Flags&span.TopLevel != 0 {
		c.TopLevel += s.Weight
	}
	if s.Flags&span.Error != 0 {
		c.Errors += s.Weight
	}
}

// Aggregate is one key's counters in one bucket: a row of a Table, flat, without a
// pointer, and two cache lines long. Its table has its sketches.
//
// Nearly all spans weigh 1, and are counted by their flags in whole numbers: two
// additions, no branch, and no error however many there are.
type Aggregate struct {
	Key      registry.KeyID
	failed   uint32                      // number of the error sketch in the table plus one, 0 until the first error
	weighted uint32                      // the same of what is counted in floats, 0 until there is some
	bucket   uint32                      // in the window
	spans    [span.KnownFlags + 1]uint64 // by flags
	nanos    uint64                      // of those spans; what would wrap around goes to the floats
}

// counts is all of them in floats.
func (a *Aggregate) counts(weighted []Counts) (c Counts) {
	if a.weighted != 0 {
		c = weighted[a.weighted-1]
	}
	for flags, n := range a.spans {
		c.Spans += n
		c.Hits += float64(n)
		if span.Flags(flags)&span.TopLevel != 0 {
			c.TopLevel += float64(n)
		}
		if span.Flags(flags)&span.Error != 0 {
			c.Errors += float64(n)
		}
	}
	c.Duration += float64(a.nanos)
	return c
}
