//go:build race

package registry

// lookupRounds is fewer under the race detector, which has nothing to find in one goroutine.
const lookupRounds = 2
