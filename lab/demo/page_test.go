package demo

import (
	"math"
	"testing"
)

// TestQuantile_FromBuckets: since computes the quantile of the spans between two readings as
// histogram_quantile does.
func TestQuantile_FromBuckets(t *testing.T) {
	earlier := &route{buckets: map[float64]float64{1: 5, 2: 5, math.Inf(1): 5}}
	now := &route{buckets: map[float64]float64{1: 15, 2: 35, math.Inf(1): 45}}
	for q, want := range map[float64]float64{0.125: 0.5, 0.25: 1, 0.5: 1.5, 0.75: 2, 0.95: 2} {
		if got := now.since(earlier, q); got != want {
			t.Errorf("quantile %v is %v instead of %v", q, got, want)
		}
	}
	if got := (&route{}).since(earlier, 0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
}
