package flush

import (
	"math"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestRowsAreApartByKeyBucketAndMapping counts twice each of two groups that differ in
// one of the three only, so that they are neighbours: each gets a row of its own.
func TestRowsAreApartByKeyBucketAndMapping(t *testing.T) {
	now := time.Now()
	one := aggregate.Group{
		Key:     span.Key{Resource: "a"},
		Bucket:  now.Truncate(testcycle.Width).UnixNano(),
		Mapping: sketch.OwnMapping,
		Counts:  aggregate.Counts{Spans: 1},
	}
	for name, change := range map[string]func(*aggregate.Group){
		"key":     func(g *aggregate.Group) { g.Key.Resource = "b" },
		"bucket":  func(g *aggregate.Group) { g.Bucket -= int64(testcycle.Width) },
		"mapping": func(g *aggregate.Group) { g.Mapping = sketch.Mapping{Gamma: 1.01} },
	} {
		other := one
		change(&other)
		var m Merger
		rows := m.Merge(testcycle.Merged(t, now, one, other, one, other))
		if len(rows) != 2 || rows[0].Spans != 2 || rows[1].Spans != 2 {
			t.Errorf("two groups that differ in their %s have %d rows, the first with %d spans", name,
				len(rows), rows[0].Spans)
		}
	}
}

func TestWholeKeepsWholeCountsAndSaturates(t *testing.T) {
	for _, most := range []uint64{math.MaxUint64, math.MaxInt64} {
		for in, want := range map[float64]uint64{
			0: 0, 1: 1, 1 << 53: 1 << 53, -1: 0, -0.5: 0, math.Inf(1): most, math.Inf(-1): 0,
			1 << 62: 1 << 62, 1 << 63: min(1<<63, most), 1 << 64: most, 1e300: most,
		} {
			if got := Whole(in, most); got != want {
				t.Errorf("Whole(%v, %d) = %d, want %d", in, most, got, want)
			}
		}
		if got := Whole(math.NaN(), most); got != 0 {
			t.Errorf("Whole(NaN, %d) = %d", most, got)
		}
	}
}

func TestWholeIsExactInTheMean(t *testing.T) {
	const n = 100_000
	var sum uint64
	for range n {
		r := Whole(7.25, math.MaxUint64)
		if r != 7 && r != 8 {
			t.Fatalf("Whole(7.25) = %d", r)
		}
		sum += r
	}
	// Nine standard deviations of the sum: 0.433 * sqrt(n) = 137.
	if diff := math.Abs(float64(sum) - 7.25*n); diff > 9*137 {
		t.Errorf("the mean of Whole(7.25) is %v", float64(sum)/n)
	}
}
