package bench

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sixteen buckets an octave keep a quantile within six per cent.
const (
	octaveShift  = 4
	octaveParts  = 1 << octaveShift
	latencyParts = 64 * octaveParts
)

// latencies is a histogram of times that a tracer fills and hands over.
type latencies struct {
	counts  [latencyParts]uint64
	longest time.Duration
}

func (l *latencies) add(took time.Duration) {
	l.counts[latencyPart(uint64(max(took, 0)))]++
	l.longest = max(l.longest, took)
}

// latencyPart numbers the buckets: below octaveParts one a nanosecond.
func latencyPart(ns uint64) int {
	if ns < octaveParts {
		return int(ns)
	}
	octave := bits.Len64(ns) - 1 - octaveShift
	return octave<<octaveShift + int(ns>>octave)
}

// latencyEnd is the first value beyond a bucket.
func latencyEnd(part int) float64 {
	if part < octaveParts {
		return float64(part + 1)
	}
	octave := part>>octaveShift - 1
	return math.Ldexp(float64(part&(octaveParts-1)+octaveParts+1), octave)
}

// bucket is a part of a histogram: what is at or below its bound and above the
// bound before.
type bucket struct {
	Bound float64 `json:"bound"`
	Count uint64  `json:"count"`
}

// buckets are those that hold something.
func (l *latencies) buckets() (filled []bucket) {
	for part, count := range l.counts {
		if count > 0 {
			filled = append(filled, bucket{latencyEnd(part), count})
		}
	}
	return filled
}

// quantile is the value below which a share of a histogram lies, taken as if
// each bucket were filled evenly from the bound before it.
func quantile(buckets []bucket, share float64) float64 {
	var total, passed uint64
	for _, b := range buckets {
		total += b.Count
	}
	if total == 0 {
		return 0
	}
	wanted, from := share*float64(total), 0.0
	for _, b := range buckets {
		if float64(passed+b.Count) >= wanted {
			if math.IsInf(b.Bound, 1) {
				return from
			}
			return from + (b.Bound-from)*max(wanted-float64(passed), 0)/float64(b.Count)
		}
		passed += b.Count
		from = b.Bound
	}
	return from
}

// merge adds histograms of the same bounds up.
func merge(histograms ...[]bucket) (merged []bucket) {
	counts := map[float64]uint64{}
	for _, buckets := range histograms {
		for _, b := range buckets {
			counts[b.Bound] += b.Count
		}
	}
	for bound, count := range counts {
		merged = append(merged, bucket{bound, count})
	}
	slices.SortFunc(merged, byBound)
	return merged
}

func byBound(a, b bucket) int { return cmp.Compare(a.Bound, b.Bound) }

// histogram is the buckets of a metric, in the order of their bounds.
func (m metrics) histogram(name string) (buckets []bucket) {
	for sample, value := range m {
		rest, found := strings.CutPrefix(sample, name+`_bucket{le="`)
		if !found {
			continue
		}
		bound, err := strconv.ParseFloat(strings.TrimSuffix(rest, `"}`), 64)
		if err == nil {
			buckets = append(buckets, bucket{bound, uint64(value)})
		}
	}
	slices.SortFunc(buckets, byBound)
	for i := len(buckets) - 1; i > 0; i-- {
		buckets[i].Count -= buckets[i-1].Count // they were cumulative
	}
	return buckets
}
