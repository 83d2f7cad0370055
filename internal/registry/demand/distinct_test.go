package demand_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry/demand"
)

// TestDistinct_ErrorIsBounded compares the estimate with a set of all hashes, for numbers from one to
// 300,000, with many seeds each.
func TestDistinct_ErrorIsBounded(t *testing.T) {
	for _, test := range []struct{ values, seeds int }{
		{1, 50}, {10, 50}, {100, 200}, {1000, 200}, {4100, 200}, {10_000, 100}, {20_000, 100}, {300_000, 5},
	} {
		outside, squares := 0, 0.0
		for seed := range test.seeds {
			random := rand.New(rand.NewPCG(uint64(test.values), uint64(seed)))
			var estimated demand.Distinct
			model := map[uint64]bool{}
			for range test.values {
				hash := random.Uint64()
				model[hash] = true
				estimated.Add(hash)
				estimated.Add(hash) // a second use is not a second value
			}
			deviation := float64(estimated.Estimate())/float64(len(model)) - 1
			squares += deviation * deviation
			if math.Abs(deviation) > 0.05 {
				outside++
			}
		}
		standardError := math.Sqrt(squares / float64(test.seeds))
		if outside*100 > test.seeds || standardError > 0.02 {
			t.Errorf("%d of %d estimates of %d values are more than 5 %% off; the standard error is %.2f %%",
				outside, test.seeds, test.values, 100*standardError)
		}
	}
}

func TestDistinct_EmptyIsZero(t *testing.T) {
	var empty demand.Distinct
	if got := empty.Estimate(); got != 0 {
		t.Errorf("the estimate without values is %d", got)
	}
}
