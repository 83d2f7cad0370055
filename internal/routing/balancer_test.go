package routing

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newTestBalancer(drainers, partitions int) *Balancer {
	b := NewBalancer(Config{Drainers: drainers, Interval: 10 * time.Second})
	b.SetRouting(newRouting(partitions, drainers))
	return b
}

// ask adds counted spans to the demand of partitions.
func (b *Balancer) ask(loads []uint64) {
	for p, load := range loads {
		b.demand.counts[p].Add(load)
	}
}

// noisy is the loads, each a tenth more or less at random.
func noisy(rnd *rand.Rand, loads []uint64) []uint64 {
	noisy := make([]uint64, len(loads))
	for i, load := range loads {
		noisy[i] = uint64(float64(load) * (0.9 + 0.2*rnd.Float64()))
	}
	return noisy
}

// TestBalancer_IgnoresNoise: once the drainers are even, traffic that varies by a tenth changes the routing at most
// once in twenty intervals, for a split partition at the limit of having cooled, or twice if so few partitions have
// load that each of them counts.
func TestBalancer_IgnoresNoise(t *testing.T) {
	forEachShape(t, 40, func(t *testing.T, rnd *rand.Rand, loads []uint64, drainers int) {
		b := newTestBalancer(drainers, len(loads))
		loaded := 0
		for i := range loads {
			loads[i] *= 100 // enough to be evidence
			loaded += int(min(1, loads[i]))
		}
		for range 12 {
			b.ask(loads)
			b.rebalance()
		}
		settled, few := b.Routing().epoch, loaded < 8*drainers || b.Stats().LoadRatio > balanced
		for range 20 {
			b.ask(noisy(rnd, loads))
			b.rebalance()
			changes := b.Routing().epoch - settled
			if changes > 2 || changes > 1 && !few {
				t.Fatalf("%d drainers, %d partitions with load: noise gave change %d, %+v",
					drainers, loaded, changes, b.Stats().LastPlan)
			}
		}
	})
}

// TestBalancer_SplitsAndMerges: a partition with most of the load is split, and is returned to one owner when its load
// has decreased.
func TestBalancer_SplitsAndMerges(t *testing.T) {
	b := newTestBalancer(4, 64)
	cold := slices.Repeat([]uint64{1000}, 64)
	hot := slices.Clone(cold)
	hot[17] = 100_000
	for range 3 {
		b.ask(hot)
		b.rebalance()
		s := b.Stats()
		if !b.Routing().isSplit(17) || s.Split != 1 || s.Splits == 0 || s.LastPlan.NewLoadRatio >= rebalanceAt {
			t.Fatalf("not split: %+v", s)
		}
		for range 2 { // the first interval moves the other partitions back
			b.ask(cold)
			b.rebalance()
		}
		if s := b.Stats(); b.Routing().isSplit(17) || s.Split != 0 || s.Merges == 0 ||
			s.LastPlan.NewLoadRatio >= rebalanceAt {
			t.Errorf("not merged: %+v", s)
		}
		checkWhole(t, b.Routing())
	}
}

// TestBalancer_IgnoresSlightUnevenness: only a load ratio from rebalanceAt on changes the routing.
func TestBalancer_IgnoresSlightUnevenness(t *testing.T) {
	loads := slices.Repeat([]uint64{10_000}, 16)
	b := newTestBalancer(2, 16)
	loads[0] = 29_000 // 1.24 times the load of drainer 1
	for range 5 {
		b.ask(loads)
		b.rebalance()
	}
	if s := b.Stats(); s.Epoch != 1 || s.LastPlan.Why != whyBalanced {
		t.Errorf("%+v", s)
	}
	loads[0] = 31_000
	b.ask(loads)
	b.rebalance()
	if s := b.Stats(); s.Epoch != 2 || s.Moves == 0 || s.LastPlan.NewLoadRatio > balanced {
		t.Errorf("%+v", s)
	}
}

// TestBalancer_WithoutLoad checks that neither no spans nor a few change the routing.
func TestBalancer_WithoutLoad(t *testing.T) {
	b := newTestBalancer(2, 16)
	loads := make([]uint64, 16)
	for range 5 {
		b.rebalance()
		loads[4] = 2*minSamples - 1
		b.ask(loads)
		b.rebalance()
	}
	if s := b.Stats(); s.Epoch != 1 || s.LastPlan.Why != whyNoLoad || s.LoadRatio <= 1 {
		t.Errorf("%+v", s)
	}
	loads[4]++
	b.ask(loads)
	b.rebalance()
	if b.Routing().epoch == 1 {
		t.Error("one span more is evidence")
	}
}

// TestBalancer_SwitchedOff: partitions grow, and nothing moves.
func TestBalancer_SwitchedOff(t *testing.T) {
	b := NewBalancer(Config{Drainers: 2})
	b.growTo(64)
	loads := make([]uint64, 64)
	loads[9] = 1_000_000
	b.ask(loads)
	b.rebalance()
	if s := b.Stats(); s.Partitions != 64 || s.Moves+s.Splits != 0 ||
		!strings.Contains(s.LastPlan.Why, "switched off") {
		t.Errorf("%+v", s)
	}
}

// TestGrowth_Immediate: the aggregate that finds no room among the partitions gets
// them, without the clock moving.
func TestGrowth_Immediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBalancer(Config{Drainers: 2, Interval: 10 * time.Second})
		b.Start()
		defer b.Stop()
		started := time.Now()
		for _, c := range [][2]int{{1, 2}, {3, 4}, {50, 64}, {64, 64}, {100, 128}, {20, 128}, {2048, 2048}} {
			b.SetKeyCount(c[0])
			synctest.Wait()
			if got := b.Routing().Partitions(); got != c[1] {
				t.Errorf("%d aggregates: %d partitions, want %d", c[0], got, c[1])
			}
		}
		if time.Since(started) != 0 {
			t.Error("growth waited for the clock")
		}
		checkWhole(t, b.Routing())
	})
}

// TestGrowth_AfterRebalance expects that after a rebalance and growth every partition has an owner.
// Growth moves no key, and each drainer gets the load that the routing assigns to it.
func TestGrowth_AfterRebalance(t *testing.T) {
	b := NewBalancer(Config{Drainers: 3, Interval: 10 * time.Second})
	rnd := rand.New(rand.NewPCG(1, 2))
	for aggregates := 10; aggregates < 4000; aggregates *= 2 {
		b.growTo(aggregates)
		checkWhole(t, b.Routing())
		for range 3 {
			loads := loadsOf(rnd, MaxPartitions, loadShapes["power"])
			loads[rnd.IntN(len(loads))] += 10_000_000
			b.ask(loads)
			b.rebalance()
			checkWhole(t, b.Routing())
		}
		before := b.Routing()
		b.growTo(3 * aggregates / 2)
		grown := b.Routing()
		route := b.NewRoute()
		route.Begin()
		asked := make([]int, 3)
		for hash := range uint32(MaxPartitions) {
			if !sameOwners(before.Owners(int(hash&before.mask)), grown.Owners(int(hash&grown.mask))) {
				t.Fatalf("growth from %d to %d partitions moved hash %d", before.Partitions(),
					grown.Partitions(), hash)
			}
			asked[route.Drainer(hash)]++
		}
		if slices.Min(asked) == 0 {
			t.Fatalf("a drainer gets nothing: %v", asked)
		}
	}
}

// TestSplit_IsEven: the spans of a split partition go to all drainers that share it, much
// the same number to each, and those of a batch all to one.
func TestSplit_IsEven(t *testing.T) {
	r := newRouting(4, 4)
	owners := [][]uint16{{0}, {3, 1, 2}, {2}, {3}}
	b := newTestBalancer(4, 4)
	b.SetRouting(r.WithOwners(owners))
	got := make([]int, 4)
	route := b.NewRoute()
	const batches = 30_000
	for range batches {
		route.Begin()
		d := route.Drainer(1)
		for range 5 {
			if route.Drainer(5) != d {
				t.Fatal("one batch went to two of the drainers that share a partition")
			}
		}
		if route.Drainer(0) != 0 || route.Drainer(6) != 2 {
			t.Fatal("a span of a whole partition went to another than its owner")
		}
		got[d]++
	}
	for d, n := range got {
		if share := float64(n) / batches; d > 0 && (share < 0.31 || share > 0.36) || d == 0 && n > 0 {
			t.Errorf("drainer %d got %.3f of the batches", d, share)
		}
	}
}

// TestDemand_IsSampled: samples represent the spans of each partition, whatever the size and timing
// of batches. A retried batch is not counted twice.
func TestDemand_IsSampled(t *testing.T) {
	for _, size := range []int{1, 7, 32, 64, 1000} {
		b := newTestBalancer(2, 64)
		route := b.NewRoute()
		var asked [64]float64
		var hashes []uint32
		const spans = 2_000_000
		for first := 0; first < spans; first += size {
			for try := range 2 {
				route.Begin()
				hashes = hashes[:0]
				for i := range size {
					hash := uint32((first + i) % 64) // a rhythm of twice the sampled distance
					if i%3 == 0 {
						hash = 7
					}
					if hashes = append(hashes, hash); try == 0 {
						asked[hash]++
					}
				}
			}
			route.CountLoad(hashes)
		}
		loads := b.demand.loadsSince(new([MaxPartitions]uint64), 64)
		for p, load := range loads {
			want := asked[p]
			if got := float64(load * sampleEvery); got < 0.8*want-1000 || got > 1.2*want+1000 {
				t.Errorf("batches of %d: partition %d was asked for %.0f, the sample says %.0f", size, p,
					want, got)
			}
		}
	}
}

// TestBalancer_MergesThousands: the partition of a hot key was divided into thousands of partitions, which are all
// split, and the key has cooled.
func TestBalancer_MergesThousands(t *testing.T) {
	const partitions, drainers = MaxPartitions, 2
	b := newTestBalancer(drainers, 1)
	b.SetRouting(newRouting(1, drainers).WithOwners([][]uint16{{0, 1}}).Subdivide(partitions))
	b.ask(slices.Repeat([]uint64{10}, partitions))
	b.rebalance()
	if s := b.Stats(); s.Split != 0 || s.Merges != partitions || s.LastPlan.NewLoadRatio > balanced {
		t.Errorf("%+v", s)
	}
}
