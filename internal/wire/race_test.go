//go:build race

package wire

// With the race detector, the reference is ten times slower, and there are no races to find: the tests use one
// goroutine.
const comparedSnapshots = 100_000
