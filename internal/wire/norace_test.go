//go:build !race

package wire

const comparedSnapshots = 1_000_000
