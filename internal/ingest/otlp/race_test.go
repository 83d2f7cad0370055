//go:build race

package otlp

// detectorShare is the additional memory that the race detector may use, relative to a memory limit.
const detectorShare = 1. / 16
