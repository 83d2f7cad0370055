//go:build !race

package aggregate

const (
	comparedDurations = 10_000_000
	glanceRounds      = 30
)
