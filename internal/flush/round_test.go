package flush

import (
	"math"
	"testing"
)

func TestRoundKeepsWholeCountsAndSaturates(t *testing.T) {
	for in, want := range map[float64]uint64{
		0: 0, 1: 1, 1 << 53: 1 << 53, -1: 0, -0.5: 0, math.Inf(1): math.MaxUint64, math.Inf(-1): 0,
		1 << 63: 1 << 63, 1 << 64: math.MaxUint64, 1e300: math.MaxUint64,
	} {
		if got := round(in); got != want {
			t.Errorf("round(%v) = %d, want %d", in, got, want)
		}
	}
	if got := round(math.NaN()); got != 0 {
		t.Errorf("round(NaN) = %d", got)
	}
}

func TestRoundIsExactInTheMean(t *testing.T) {
	const n = 100_000
	var sum uint64
	for range n {
		r := round(7.25)
		if r != 7 && r != 8 {
			t.Fatalf("round(7.25) = %d", r)
		}
		sum += r
	}
	// Nine standard deviations of the sum: 0.433 * sqrt(n) = 137.
	if diff := math.Abs(float64(sum) - 7.25*n); diff > 9*137 {
		t.Errorf("the mean of round(7.25) is %v", float64(sum)/n)
	}
}
