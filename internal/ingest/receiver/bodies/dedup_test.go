package bodies_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
)

// TestDedupCache_BusyGateway counts 200 bodies per second, each of which its sender retries after nine minutes. With the
// memory of the largest preset, every retry is recognized, and nothing is evicted early.
func TestDedupCache_BusyGateway(t *testing.T) {
	const perSecond, retriesAfter, seconds = 200, 540, 1200
	d, now := bodies.NewDedupCache(bodies.MaxDedupEntries(32<<20)), time.Now()
	for second := range seconds {
		for i := range perSecond {
			sum := uint64(second*perSecond + i)
			d.Add(sum, 4, now)
			if retried := sum - retriesAfter*perSecond; second >= retriesAfter && !d.Has(retried, now) {
				t.Fatalf("after %d s, a retry of a body of nine minutes ago is not recognized", second)
			}
		}
		now = now.Add(time.Second)
	}
	if d.Evicted() != 0 {
		t.Errorf("%d bodies were evicted early", d.Evicted())
	}
}

func TestDedupCache_HoldsTheLastBodies(t *testing.T) {
	const most = 3000
	d, now := bodies.NewDedupCache(most), time.Now()
	const all = 3*most + 7
	for sum := uint64(0); sum < all; sum++ {
		if d.Has(sum, now) {
			t.Fatalf("body %d is known before it is counted", sum)
		}
		if d.Add(sum, 4, now); !d.Has(sum, now) {
			t.Fatalf("body %d is not known", sum)
		}
	}
	for sum := uint64(0); sum < all; sum++ {
		if isLast := sum >= all-most; d.Has(sum, now) != isLast {
			t.Fatalf("body %d of %d: known %v", sum, all, !isLast)
		}
	}
	if d.Evicted() != all-most {
		t.Errorf("%d evictions are counted, want %d", d.Evicted(), all-most)
	}
}

func TestDedupCache_ForgetsOldBodies(t *testing.T) {
	const most = 4096
	d, now := bodies.NewDedupCache(most), time.Now()
	sum := d.Hash([]byte("body"))
	if sum != d.Hash([]byte("body")) || sum == d.Hash([]byte("Body")) {
		t.Error("hashes do not tell bodies apart")
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
	for other := sum + 1; other < sum+most; other++ {
		d.Add(other, 4, later)
	}
	if !d.Has(sum, later) || d.Evicted() != 0 {
		t.Errorf("the older entry of a body takes the newer with it; %d evicted", d.Evicted())
	}
}

func TestDedupCache_HasLength(t *testing.T) {
	d, now := bodies.NewDedupCache(4), time.Now()
	if d.HasLength(0, now) || d.HasAny(now) {
		t.Error("an empty cache has a body")
	}
	d.Add(1, 7, now)
	for length, want := range map[int64]bool{7: true, 6: false, 0: false} {
		if d.HasLength(length, now) != want {
			t.Errorf("a body of %d bytes: %v", length, !want)
		}
	}
	if !d.HasAny(now) {
		t.Error("the cache has no body")
	}
	if d.HasLength(7, now.Add(bodies.MaxAge)) || d.HasAny(now.Add(bodies.MaxAge)) {
		t.Error("an old body is not forgotten")
	}
}

// TestDedupBytes_IsEnough compares the stated memory of a full cache with its allocations, which include those of its
// shorter rings and tables.
func TestDedupBytes_IsEnough(t *testing.T) {
	const most = 100_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	d, now := bodies.NewDedupCache(most), time.Now()
	for sum := uint64(0); sum < 2*most; sum++ {
		d.Add(sum*0x9e3779b97f4a7c15, 4, now)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2*uint64(bodies.DedupBytes(most)) {
		t.Errorf("a cache of %d bodies allocates %d bytes, %d are stated", most, got, bodies.DedupBytes(most))
	}
}
