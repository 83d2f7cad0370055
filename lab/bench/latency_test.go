package bench

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQuantiles: the quantiles of several tracers are those of all their durations together,
// both within one process and merged from several results.
func TestQuantiles(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tracers := [3]*latencies{newLatencies(), newLatencies(), newLatencies()}
	var all []float64
	for range 100_000 {
		took := time.Duration(1000 + rnd.ExpFloat64()*1e6)
		tracers[rnd.IntN(3)].add(took)
		all = append(all, float64(took))
	}
	slices.Sort(all)
	merged := newLatencies()
	for _, l := range tracers {
		written, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		var read latencies
		if err := json.Unmarshal(written, &read); err != nil {
			t.Fatal(err)
		}
		merged.merge(&read)
	}
	got := merged.times()
	for share, quantile := range map[float64]float64{0.5: got.P50, 0.99: got.P99, 0.999: got.P999} {
		if want := all[int(share*float64(len(all)))]; math.Abs(quantile-want) > want*0.02 {
			t.Errorf("quantile %v: %v, want %v", share, quantile, want)
		}
	}
	if got.Samples != 100_000 || got.Longest != all[len(all)-1] {
		t.Errorf("%d samples, the longest %v", got.Samples, got.Longest)
	}
}

// TestQuantiles_FromHistogram: the quantiles of a metric's histogram lie within its buckets, and
// none is over its last bound.
func TestQuantiles_FromHistogram(t *testing.T) {
	if got := newLatencies().times(); got != (Times{}) {
		t.Errorf("of nothing: %+v", got)
	}
	l := newLatencies()
	l.addHistogram([]bucket{{1e-9, 1}, {10e-9, 89}, {math.Inf(1), 10}})
	l.Longest = 100
	if got := l.times(); got.P50 < 1 || got.P50 > 10 || got.P99 < 9 || got.P99 > 11 || got.Longest != 100 ||
		got.Samples != 100 {
		t.Errorf("%+v", got)
	}
}
