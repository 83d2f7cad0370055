package aggregate

import "github.com/spanstatsd/spanstatsd/internal/span"

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

// Row is one key's counters in one bucket, without its sketches.
type Row struct {
	Key    KeyID
	failed uint32 // of an Aggregate: number of the error sketch in the table plus one, 0 until the first error
	Bucket int64  // start of the bucket, nanoseconds since the Unix epoch
	Counts
}

// Aggregate is one key's counters and sketches in one bucket: a row of a Table,
// flat and without a pointer, so that the collector has nothing to look at. Its
// table reads the sketches.
type Aggregate struct {
	Row
	ok store
}

// count counts all of one snapshot but its duration's bin.
func (a *Aggregate) count(s *Slot) {
	a.Spans++
	a.Hits += s.Weight
	a.Duration += float64(s.Duration) * s.Weight
	if s.Flags&span.TopLevel != 0 {
		a.TopLevel += s.Weight
	}
	if s.Flags&span.Error != 0 {
		a.Errors += s.Weight
	}
}
