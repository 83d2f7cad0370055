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
		if d.Add(sum, 4, now); !d.Has(sum, now) {
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
	d.Add(sum, 4, now)
	for age, want := range map[time.Duration]bool{
		0: true, bodies.MaxAge - 1: true, bodies.MaxAge: false, time.Hour: false,
	} {
		if d.Has(sum, now.Add(age)) != want {
			t.Errorf("after %s: known %v", age, !want)
		}
	}
	later := now.Add(time.Hour)
	d.Add(sum, 4, later) // counted again after MaxAge
	for other := sum + 1; other < sum+bodies.MaxCounted; other++ {
		d.Add(other, 4, later)
	}
	if !d.Has(sum, later) {
		t.Error("the older entry of a body takes the newer with it")
	}
}

func TestDedupCache_HasLength(t *testing.T) {
	d, now := bodies.NewDedupCache(), time.Now()
	if d.HasLength(0, now) || d.HasLength(-1, now) {
		t.Error("an empty cache has a body")
	}
	d.Add(1, 7, now)
	for length, want := range map[int64]bool{7: true, 6: false, 0: false, -1: true} {
		if d.HasLength(length, now) != want {
			t.Errorf("a body of %d bytes: %v", length, !want)
		}
	}
	if d.HasLength(7, now.Add(bodies.MaxAge)) {
		t.Error("an old body is not forgotten")
	}
}
