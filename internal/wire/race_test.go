//go:build race

package wire

// Under the race detector the library's reference is ten times slower, and what
// the detector looks for is not here: one goroutine compares two readings.
const comparedSnapshots = 100_000
