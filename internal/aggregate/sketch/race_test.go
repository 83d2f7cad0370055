//go:build race

package sketch

// comparedDurations is fewer under the race detector, which has nothing to find in one goroutine.
const comparedDurations = 200_000
