package aggregate

import (
	"math"
	"testing"
)

// Every age is at most the bound of its bucket, and above the previous bound.
func TestAgeBuckets(t *testing.T) {
	all := []uint64{0, 1, math.MaxUint64}
	for _, bound := range ageBounds {
		all = append(all, bound-1, bound, bound+1)
	}
	for _, age := range all {
		var a ages
		a.observe(age)
		for bucket := range a.counts {
			inside := (bucket == 0 || age > ageBounds[bucket-1]) &&
				(bucket == ageBuckets || age <= ageBounds[bucket])
			if counted := a.counts[bucket].Load() == 1; counted != inside {
				t.Errorf("age %d is in bucket %d: %t", age, bucket, counted)
			}
		}
	}
}

// The age of every ageEvery-th slot is recorded, however the slots are divided into slices.
func TestAges_SampledAcrossSlices(t *testing.T) {
	const all = 10*ageEvery + 7
	var slots [all]Slot
	for i := range slots {
		slots[i].End = math.MaxInt64 // no age
	}
	for i := 0; i < all; i += ageEvery {
		slots[i].End = math.MinInt64 // the last bucket's
	}
	for _, length := range []int{1, 3, 512, ageEvery - 1, ageEvery, 5*ageEvery + 1, all} {
		var a ages
		for from := 0; from < all; from += length {
			a.sample(slots[from:min(from+length, all)])
		}
		if old, young := a.counts[ageBuckets].Load(), a.counts[0].Load(); old != 11 || young != 0 {
			t.Errorf("in slices of %d: %d of 11 ages were recorded, and %d others", length, old, young)
		}
	}
}

// TestAges_ImplausibleEndTimes: a tracer can send any end time, and the sum of all ages never decreases.
func TestAges_ImplausibleEndTimes(t *testing.T) {
	var a ages
	const now, seconds = 1_700_000_000e9, 1_700_000_000
	for n, c := range []struct {
		end int64
		age float64
	}{
		{now, 0},
		{now + 1, 0},
		{math.MaxInt64, 0},
		{now - 2e9, 2},
		{0, seconds},
		{math.MinInt64, seconds + 1<<63/1e9},
		{math.MinInt64, seconds + 1<<63/1e9},
		{math.MinInt64, seconds + 1<<63/1e9},
	} {
		before := newAges()
		before.add(&a)
		a.observe(ageAt(now, c.end))
		after := newAges()
		after.add(&a)
		if grew := after.Sum - before.Sum; math.Abs(grew-c.age) > 1e-4 {
			t.Errorf("sample %d of %d: the sum grew by %g, want %g", n, c.end, grew, c.age)
		}
	}
}

// TestStats_AdjustedCount checks that sampled spans count with their weights, and that it is the number of aggregated
// spans if none was sampled.
func TestStats_AdjustedCount(t *testing.T) {
	for want, weights := range map[uint64][]float64{3: {1, 1, 1}, 41: {20, 1, 20}, 0: {}} {
		d := drainer{tables: [2]*Table{newTestTable(1), newTestTable(1)}}
		for _, weight := range weights {
			d.count([]Slot{{Weight: weight}})
		}
		s := Stats{Drainers: []DrainerStats{{
			Aggregated: d.aggregated.Load(), Excess: math.Float64frombits(d.excess.Load()),
		}}}
		if got := s.AdjustedCount(); got != want || s.Aggregated() != uint64(len(weights)) {
			t.Errorf("weights %v: adjusted count %d of %d, want %d", weights, got, s.Aggregated(), want)
		}
	}
}
