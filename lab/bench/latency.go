package bench

import (
	"maps"
	"math"
	"slices"
	"time"
)

// latencies is a histogram of durations in nanoseconds, with one bin per power of binGrowth.
// Tracer processes write theirs into the result, and they are merged here.
type latencies struct {
	Bins    map[int]uint64 `json:"bins"`
	Longest float64        `json:"longest"`
}

// binGrowth bounds the error of a quantile to one percent.
const binGrowth = 1.02

func newLatencies() *latencies { return &latencies{Bins: map[int]uint64{}} }

func (l *latencies) add(took time.Duration) { l.addCount(float64(took), 1) }

func (l *latencies) addCount(ns float64, count uint64) {
	l.Bins[int(math.Round(math.Log(max(ns, 1))/math.Log(binGrowth)))] += count
	l.Longest = max(l.Longest, ns)
}

func (l *latencies) merge(other *latencies) {
	for bin, count := range other.Bins {
		l.Bins[bin] += count
	}
	l.Longest = max(l.Longest, other.Longest)
}

// addHistogram adds a histogram of one of the daemon's metrics, in seconds. Each bucket counts
// as its midpoint, the last one as its lower bound.
func (l *latencies) addHistogram(buckets []bucket) {
	from := 0.0
	for _, b := range buckets {
		middle := (from + b.bound) / 2
		if math.IsInf(b.bound, 1) {
			middle = from
		}
		if b.count > 0 {
			l.addCount(middle*1e9, b.count)
		}
		from = b.bound
	}
}

// Times holds quantiles in nanoseconds.
type Times struct {
	P50     float64 `json:"p50_ns"`
	P99     float64 `json:"p99_ns"`
	P999    float64 `json:"p999_ns"`
	Longest float64 `json:"max_ns"`
	Samples uint64  `json:"samples"`
}

// times returns the quantiles, each limited to the maximum duration.
func (l *latencies) times() Times {
	t := Times{Longest: l.Longest}
	for _, count := range l.Bins {
		t.Samples += count
	}
	quantile := func(share float64) float64 {
		below := uint64(share * float64(t.Samples))
		for _, bin := range slices.Sorted(maps.Keys(l.Bins)) {
			if below < l.Bins[bin] {
				return min(math.Pow(binGrowth, float64(bin)), l.Longest)
			}
			below -= l.Bins[bin]
		}
		return 0
	}
	t.P50, t.P99, t.P999 = quantile(0.5), quantile(0.99), quantile(0.999)
	return t
}
