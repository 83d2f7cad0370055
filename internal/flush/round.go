package flush

import (
	"math"
	"math/rand/v2"
)

// round makes a weighted count whole the agent's way: a fraction goes up as
// often as it is large, so that the mean over many payloads is exact. A whole
// count stays as it is. What a uint64 cannot hold is held by its nearest end,
// because wrapping around would turn the largest count into the smallest.
func round(f float64) uint64 {
	switch {
	case !(f > 0): // also what is not a number
		return 0
	case f >= math.MaxUint64:
		return math.MaxUint64
	}
	whole := uint64(f)
	if fraction := f - float64(whole); fraction > 0 && rand.Float64() < fraction {
		whole++
	}
	return whole
}
