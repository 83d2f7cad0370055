package sketch

import (
	"fmt"
	"math"
	"sort"
)

// MaxBounds is how many bounds classic buckets may have.
const MaxBounds = 64

// CheckBounds says what makes upper bounds, in seconds, unusable.
func CheckBounds(bounds []float64) error {
	if len(bounds) > MaxBounds {
		return fmt.Errorf("check bounds: %d are too many; give at most %d", len(bounds), MaxBounds)
	}
	for i, bound := range bounds {
		switch {
		case !(bound > 0):
			return fmt.Errorf("check bounds: %v is not positive; give seconds, such as 0.25", bound)
		case math.IsInf(bound, 1):
			return fmt.Errorf("check bounds: %v has its bucket without being named; leave it out", bound)
		case i > 0 && bound <= bounds[i-1]:
			return fmt.Errorf("check bounds: %v does not come after %v; give them in rising order", bound,
				bounds[i-1])
		}
	}
	return nil
}

// boundOf is the place of the lowest bound that so many nanoseconds are not beyond. It compares
// seconds, as whoever measures in seconds does.
func boundOf(bounds []float64, nanoseconds float64) int {
	return sort.Search(len(bounds), func(i int) bool { return nanoseconds/1e9 <= bounds[i] })
}
