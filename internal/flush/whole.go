package flush

import "math/rand/v2"

// Whole makes a weighted count whole, for a destination that takes integers: a fraction goes
// up as often as it is large, so that the mean over many payloads is exact. A whole count
// stays as it is. What the destination's type cannot hold becomes the most that it can, because
// wrapping around would turn the largest count into the smallest.
func Whole(f float64, most uint64) uint64 {
	switch {
	case !(f > 0): // also what is not a number
		return 0
	case f >= float64(most):
		return most
	}
	n := uint64(f)
	if fraction := f - float64(n); fraction > 0 && rand.Float64() < fraction {
		n++
	}
	return n
}
