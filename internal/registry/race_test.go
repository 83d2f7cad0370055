//go:build race

package registry

// glanceRounds is fewer under the race detector, which has nothing to find in one goroutine.
const glanceRounds = 2
