package bench

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Every time lies in a bucket that ends beyond it, after one that does not, and
// is at most a sixteenth wide.
func TestLatencyParts(t *testing.T) {
	values := []uint64{0, 1, 15, 16, 17, 1<<62 - 1}
	for shift := range 62 {
		values = append(values, 1<<shift, 1<<shift-1, 1<<shift+1, 3<<shift/2)
	}
	for _, ns := range values {
		part := latencyPart(ns)
		end, start := latencyEnd(part), 0.0
		if part > 0 {
			start = latencyEnd(part - 1)
		}
		if v := float64(ns); v < start || v > end || end-start > max(1, start/octaveParts) {
			t.Errorf("%d lies in bucket %d, from %v to %v", ns, part, start, end)
		}
	}
}

// Quantiles of what several tracers saw are those of all their times together.
func TestQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var tracers [3]latencies
	var all []float64
	for range 100_000 {
		took := time.Duration(1000 + rnd.ExpFloat64()*1e6)
		tracers[rnd.IntN(3)].add(took)
		all = append(all, float64(took))
	}
	slices.Sort(all)
	merged := merge(tracers[0].buckets(), tracers[1].buckets(), tracers[2].buckets())
	for _, share := range []float64{0.001, 0.5, 0.99, 0.999} {
		got, want := quantile(merged, share), all[int(share*float64(len(all)))]
		if math.Abs(got-want) > want/octaveParts {
			t.Errorf("quantile %v: %v, want %v", share, got, want)
		}
	}
	if quantile(nil, 0.5) != 0 {
		t.Error("a quantile of nothing is something")
	}
	if got := quantile([]bucket{{10, 1}, {math.Inf(1), 9}}, 0.99); got != 10 {
		t.Errorf("beyond the last bound is %v, want that bound", got)
	}
}
