//go:build !race

package built

const isRaced = false
