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

// However spans are cut into batches, every ageEvery-th is chosen, as long as there are
// no more than that in one.
func TestAgeingChoosesSpansAndNotBatches(t *testing.T) {
	const spans = 10*ageEvery + 7
	for _, batch := range []int{1, 3, 512, ageEvery - 1, ageEvery} {
		var a Ageing
		var chosen []int
		for from := 0; from < spans; from += batch {
			n := min(batch, spans-from)
			if at := a.Next(n); at >= 0 {
				chosen = append(chosen, from+at)
			}
		}
		for i, at := range chosen {
			if at != i*ageEvery {
				t.Fatalf("in batches of %d: span %d was chosen as number %d", batch, at, i)
			}
		}
		if len(chosen) != 11 {
			t.Errorf("in batches of %d: %d were chosen, want 11", batch, len(chosen))
		}
	}
	// Of a longer batch it is one, and those behind keep the distance.
	var a Ageing
	for _, batch := range []struct{ spans, chosen int }{
		{5*ageEvery + 1, 0}, {ageEvery - 2, -1}, {2, 1}, {ageEvery - 1, -1}, {2 * ageEvery, 0}, {1, 0},
	} {
		if at := a.Next(batch.spans); at != batch.chosen {
			t.Errorf("of %d spans, %d was chosen, want %d", batch.spans, at, batch.chosen)
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
		a.observe(ageAt(now, c.end))
		after := newAges()
		after.add(&a)
		if grew := after.Sum - before.Sum; math.Abs(grew-c.age) > 1e-4 {
			t.Errorf("sample %d of %d: the sum grew by %g, want %g", n, c.end, grew, c.age)
		}
	}
}
