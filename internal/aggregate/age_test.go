package aggregate

import (
	"math"
	"testing"
)

// Every age lies at or below its bucket's bound and above the one before.
func TestAgeBuckets(t *testing.T) {
	ages := []uint64{0, 1, 1 << ageShift, 1<<ageShift + 1, math.MaxUint64}
	for bucket := range ageBuckets {
		bound := ageBound(bucket)
		ages = append(ages, bound-1, bound, bound+1)
	}
	for _, age := range ages {
		bucket := ageBucket(age)
		if bucket < ageBuckets && age > ageBound(bucket) {
			t.Errorf("age %d lies in bucket %d, which ends at %d", age, bucket, ageBound(bucket))
		}
		if bucket > 0 && age <= ageBound(bucket-1) {
			t.Errorf("age %d lies in bucket %d, but the one before ends at %d", age, bucket, ageBound(bucket-1))
		}
	}
}

// However slots are cut into turns, every ageEvery-th span is looked at.
func TestAgesSampleSpansAndNotTurns(t *testing.T) {
	const now, spans = 1 << 40, 10*ageEvery + 7
	slots := make([]Slot, spans)
	for i := range slots {
		slots[i].End = now - 1 // found by nobody
		if i%ageEvery == 0 {
			slots[i].End = now - 1<<20
		}
	}
	slots[0].End = now + 5 // from a clock that is ahead
	for _, turn := range []int{1, 3, 512, ageEvery, ageEvery + 1, spans} {
		var a ages
		for rest := slots; len(rest) > 0; {
			n := min(turn, len(rest))
			a.sample(rest[:n], now)
			rest = rest[n:]
		}
		got := newAges()
		got.add(&a)
		if got.Counts[ageBucket(1<<20)] != 10 || got.Counts[0] != 1 {
			t.Errorf("in turns of %d: %d old and %d young spans were looked at, want 10 and 1", turn, got.Counts[ageBucket(1<<20)], got.Counts[0])
		}
		if want := float64(1<<20) / 1e9; got.Highest != want || math.Abs(got.Sum-10*want) > 1e-12 {
			t.Errorf("in turns of %d: highest %v and sum %v, want %v and ten times that", turn, got.Highest, got.Sum, want)
		}
	}
}

// TestAgesOfAnyEnd: a tracer may say any end, and the sum of all ages never goes back.
func TestAgesOfAnyEnd(t *testing.T) {
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
		a.skip = 0
		a.sample([]Slot{{End: c.end}}, now)
		after := newAges()
		after.add(&a)
		if grew := after.Sum - before.Sum; math.Abs(grew-c.age) > 1e-4 {
			t.Errorf("sample %d of %d: the sum grew by %g, want %g", n, c.end, grew, c.age)
		}
	}
}
