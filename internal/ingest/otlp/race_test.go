//go:build race

package otlp

// detectorShare is the part of a promise of memory that the race detector may take on top:
// it keeps things of its own for what is allocated.
const detectorShare = 1. / 16
