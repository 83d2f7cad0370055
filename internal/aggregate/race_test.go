//go:build race

package aggregate

// comparedDurations is fewer under the race detector, which has nothing to find
// in one goroutine.
const comparedDurations = 200_000

// glanceRounds is fewer for the same reason.
const glanceRounds = 2
