package bodies_test

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
)

func TestDedupCache_HoldsTheLastBodies(t *testing.T) {
	d, now := bodies.NewDedupCache(), time.Now()
	const all = 3*bodies.MaxCounted + 7
	for sum := uint64(0); sum < all; sum++ {
		if d.Has(sum, now) {
			t.Fatalf("body %d is known before it is counted", sum)
		}
		if d.Add(sum, now); !d.Has(sum, now) {
			t.Fatalf("body %d is not known", sum)
		}
	}
	for sum := uint64(0); sum < all; sum++ {
		if isLast := sum >= all-bodies.MaxCounted; d.Has(sum, now) != isLast {
			t.Fatalf("body %d of %d: known %v", sum, all, !isLast)
		}
	}
}

func TestDedupCache_ForgetsOldBodies(t *testing.T) {
	d, now := bodies.NewDedupCache(), time.Now()
	sum := d.Sum([]byte("body"))
	if sum != d.Sum([]byte("body")) || sum == d.Sum([]byte("Body")) {
		t.Error("sums do not tell bodies apart")
	}
	d.Add(sum, now)
	for age, want := range map[time.Duration]bool{
		0: true, bodies.MaxAge - 1: true, bodies.MaxAge: false, time.Hour: false,
	} {
		if d.Has(sum, now.Add(age)) != want {
			t.Errorf("after %s: known %v", age, !want)
		}
	}
	later := now.Add(time.Hour)
	d.Add(sum, later) // is counted again
	for other := sum + 1; other < sum+bodies.MaxCounted; other++ {
		d.Add(other, later)
	}
	if !d.Has(sum, later) {
		t.Error("the older entry of a body takes the newer with it")
	}
}
