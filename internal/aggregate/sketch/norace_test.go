//go:build !race

package sketch

const comparedDurations = 10_000_000
