package aggregate

// Counts is what is counted of a key besides its durations' distribution.
//
// The weighted ones are float64, as the agent's are: exact for whole numbers up to 2^53,
// fractional where a weight is, and unable to wrap around. A number that is larger than a
// payload can say stays at the largest that it can say.
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
