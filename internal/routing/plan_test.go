package routing

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// loadShapes are kinds of traffic: each returns the load of partition i, in counted spans.
var loadShapes = map[string]func(rnd *rand.Rand, i int) uint64{
	"even":    func(*rand.Rand, int) uint64 { return 5000 },
	"uniform": func(rnd *rand.Rand, _ int) uint64 { return 1 + rnd.Uint64N(10_000) },
	"sparse": func(rnd *rand.Rand,
		_ int,
	) uint64 {
		return rnd.Uint64N(10_000) * rnd.Uint64N(2) * rnd.Uint64N(2)
	},
	"power": func(rnd *rand.Rand, _ int) uint64 {
		return uint64(1000 / math.Pow(rnd.Float64()+0.001,
			1.2))
	},
	"one hot": func(rnd *rand.Rand, i int) uint64 {
		return 100 + rnd.Uint64N(100) +
			uint64(max(0, 1-i))*1_000_000
	},
	"few": func(rnd *rand.Rand, i int) uint64 {
		return uint64(max(0, 4-i)) * (10_000 +
			rnd.Uint64N(5000))
	},
	"two hot": func(rnd *rand.Rand, i int) uint64 {
		return 500 +
			uint64(max(0, 2-i))*(100_000+rnd.Uint64N(50_000))
	},
	"one only": func(_ *rand.Rand, i int) uint64 { return uint64(max(0, 1-i)) * 100_000 },
}

func loadsOf(rnd *rand.Rand, partitions int, shape func(*rand.Rand, int) uint64) []uint64 {
	loads := make([]uint64, partitions)
	for i := range loads {
		loads[i] = shape(rnd, i)
	}
	rnd.Shuffle(len(loads), func(i, j int) { loads[i], loads[j] = loads[j], loads[i] })
	return loads
}

// anyRouting is one as it may be after a long life: owners at random, some
// partitions split.
func anyRouting(rnd *rand.Rand, partitions, drainers int) *Routing {
	r := newRouting(partitions, drainers)
	owners := make([][]uint16, partitions)
	for p := range owners {
		n := 1
		if drainers > 1 && rnd.IntN(10) == 0 {
			n = 2 + rnd.IntN(drainers-1)
		}
		for _, d := range rnd.Perm(drainers)[:n] {
			owners[p] = append(owners[p], uint16(d))
		}
	}
	return r.WithOwners(owners)
}

// checkWhole fails unless every partition has owners, all different, that exist.
func checkWhole(t *testing.T, r *Routing) {
	t.Helper()
	for p := range r.Partitions() {
		owners := slices.Sorted(slices.Values(r.Owners(p)))
		if len(owners) == 0 || len(slices.Compact(owners)) != len(r.Owners(p)) ||
			int(slices.Max(owners)) >= r.drainers {
			t.Fatalf("partition %d is owned by %v of %d drainers", p, r.Owners(p), r.drainers)
		}
	}
}

// after is the routing that a plan leads to.
func after(r *Routing, p Plan) *Routing {
	if p.owners == nil {
		return r
	}
	return r.WithOwners(p.owners)
}

func forEachShape(t *testing.T, seeds uint64,
	f func(t *testing.T, rnd *rand.Rand, loads []uint64, drainers int),
) {
	for name, shape := range loadShapes {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				rnd := rand.New(rand.NewPCG(seed, 11))
				drainers := 1 + rnd.IntN(12)
				f(t, rnd, loadsOf(rnd, 16<<rnd.IntN(5), shape), drainers)
			}
		})
	}
}

// TestPlan_Properties: for any loads and owners, each partition has an owner, the loads are not less
// even than before, partitions without load stay, and the plan for the result changes nothing.
func TestPlan_Properties(t *testing.T) {
	forEachShape(t, 200, func(t *testing.T, rnd *rand.Rand, loads []uint64, drainers int) {
		before := anyRouting(rnd, len(loads), drainers)
		p := planRebalancing(loads, before)
		routing := after(before, p)
		checkWhole(t, routing)
		was, is := newAssignment(loads, before), newAssignment(loads, routing)
		if p.Merges == 0 && (is.loadRatio() > was.loadRatio()+1e-9 || is.highestLoad() > was.highestLoad()+1e-6) {
			t.Fatalf("worse: ratio %.3f -> %.3f, most %.0f -> %.0f", was.loadRatio(), is.loadRatio(), was.highestLoad(),
				is.highestLoad())
		}
		if math.Abs(is.loadRatio()-p.NewLoadRatio) > 1e-9 || math.Abs(was.loadRatio()-p.OldLoadRatio) > 1e-9 {
			t.Fatalf("planned %.3f -> %.3f, is %.3f -> %.3f", p.OldLoadRatio, p.NewLoadRatio, was.loadRatio(), is.loadRatio())
		}
		loaded, changed := 0, 0
		for partition, load := range loads {
			same := sameOwners(before.Owners(partition), routing.Owners(partition))
			if load == 0 && !same && !before.isSplit(partition) {
				t.Fatalf("partition %d has no load and went from %v to %v", partition,
					before.Owners(partition), routing.Owners(partition))
			}
			if load > 0 {
				loaded++
			}
			if !same {
				changed++
			}
		}
		if changed-p.Merges > loaded || changed != p.Moves+p.Splits+p.Merges {
			t.Fatalf("%d of %d partitions with load changed; the plan says %d moves, %d splits, %d merges",
				changed, loaded, p.Moves, p.Splits, p.Merges)
		}
		if was.loadRatio() < rebalanceAt && p.owners != nil && p.Merges == 0 {
			t.Fatalf("acted at %.3f", was.loadRatio())
		}
		for rounds := 1; p.owners != nil; rounds++ {
			if p = planRebalancing(loads, routing); rounds == 3 && p.owners != nil {
				t.Fatalf("the same loads are planned for again and again: %+v", p)
			}
			routing = after(routing, p)
		}
	})
}

// TestPlan_EvensLoads: from a dealt routing, wherever traffic can be cut finely enough,
// the drainers end up even, and a partition above a fair share is split.
func TestPlan_EvensLoads(t *testing.T) {
	forEachShape(t, 200, func(t *testing.T, _ *rand.Rand, loads []uint64, drainers int) {
		if len(loads) < 2*drainers {
			return
		}
		r := newRouting(len(loads), drainers)
		p := planRebalancing(loads, r)
		routing := after(r, p)
		layout := newAssignment(loads, routing)
		if layout.loadRatio() >= rebalanceAt {
			t.Fatalf("%d drainers, ratio %.3f -> %.3f, because %s", drainers, p.OldLoadRatio, layout.loadRatio(), p.Why)
		}
		for partition, load := range loads {
			if float64(load) > layout.fairLoad()*rebalanceAt && !routing.isSplit(partition) {
				t.Fatalf("partition %d has %d, a fair share is %.0f, and it is not split", partition, load,
					layout.fairLoad())
			}
		}
	})
}

// TestPlan_MovesLittle: of a level assignment in which one partition's load
// doubled, few move.
func TestPlan_MovesLittle(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		loads := loadsOf(rnd, 256, loadShapes["uniform"])
		r := newRouting(256, 4)
		r = after(r, planRebalancing(loads, r))
		total := uint64(0)
		for _, load := range loads {
			total += load
		}
		loads[rnd.IntN(256)] += total / 10
		if p := planRebalancing(loads, r); p.owners == nil || p.NewLoadRatio > 1.1 || p.Moves > 40 {
			t.Fatalf("seed %d: %+v", seed, p)
		}
	}
}

// best is the least load that the busiest of the drainers can have, tried out.
func best(loads []uint64, drainers int) float64 {
	drained := make([]uint64, drainers)
	least := uint64(math.MaxUint64)
	var try func(i int, most uint64)
	try = func(i int, most uint64) {
		if most >= least {
			return
		}
		if i == len(loads) {
			least = most
			return
		}
		for d := range drained {
			drained[d] += loads[i]
			try(i+1, max(most, drained[d]))
			drained[d] -= loads[i]
			if drained[d] == 0 {
				return // the other empty ones are like it
			}
		}
	}
	try(0, 0)
	return float64(least)
}

// TestPlan_IsNearOptimum compares the plan with the best assignment of all.
func TestPlan_IsNearOptimum(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		drainers := 2 + rnd.IntN(3)
		loads := make([]uint64, 8)
		for i := range loads {
			loads[i] = 1 + rnd.Uint64N(1000)*rnd.Uint64N(1000)
		}
		optimum := best(loads, drainers)
		r := anyRouting(rnd, len(loads), drainers)
		for p := range loads { // nothing is split
			r.owner[p] = r.Owners(p)[0]
		}
		if planned := newAssignment(loads, after(r, planRebalancing(loads, r))); planned.highestLoad() > optimum*4/3 {
			t.Fatalf("seed %d: planned %.0f, the best is %.0f of %v", seed, planned.highestLoad(), optimum, loads)
		}
	}
}

// TestPlan_MergesCooledPartition: a split partition is returned to one owner when its load has decreased.
func TestPlan_MergesCooledPartition(t *testing.T) {
	loads := slices.Repeat([]uint64{10_000}, 16)
	loads[3] = 500_000
	r := newRouting(16, 2)
	r = after(r, planRebalancing(loads, r))
	if !r.isSplit(3) {
		t.Fatalf("not split: %v", r.Owners(3))
	}
	if p := planRebalancing(loads, r); p.owners != nil {
		t.Errorf("merged while it is hot: %+v", p)
	}
	loads[3] = 12_000
	cooler := planRebalancing(loads, r)
	if merged := after(r, cooler); merged.isSplit(3) || cooler.Merges != 1 || cooler.NewLoadRatio > balanced ||
		len(merged.splitOwners) != 0 {
		t.Errorf("not merged: %+v", cooler)
	}
	few := []uint64{90_000, 90_000, 90_000, 0}
	r = newRouting(4, 2)
	r = after(r, planRebalancing(few, r))
	if len(r.splitOwners) != 1 {
		t.Fatalf("three heavy partitions on two drainers: %v", r.owner)
	}
	if p := planRebalancing(few, r); p.owners != nil {
		t.Errorf("merged, which leaves the drainers uneven: %+v", p)
	}
}

// TestGrowth_KeepsOwners: growth moves no key, in whatever state the routing is.
func TestGrowth_KeepsOwners(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		coarse := anyRouting(rnd, 4<<rnd.IntN(5), 1+rnd.IntN(4))
		fine := coarse.Subdivide(coarse.Partitions() << rnd.IntN(4))
		checkWhole(t, fine)
		for range 200 {
			hash := rnd.Uint32()
			if before, now := coarse.Owners(int(hash&coarse.mask)),
				fine.Owners(int(hash&fine.mask)); !sameOwners(before, now) {
				t.Fatalf("a key of %v went to %v", before, now)
			}
		}
	}
}

func TestPartitions_FollowAggregates(t *testing.T) {
	for _, c := range []struct{ drainers, aggregates, want int }{
		{1, 0, 1},
		{2, 0, 2},
		{3, 0, 4},
		{2, 3, 4},
		{2, 50, 64},
		{2, 2048, 2048},
		{8, 1889, 2048},
		{2, 1 << 20, MaxPartitions},
	} {
		if got := partitionsFor(c.drainers, c.aggregates); got != c.want {
			t.Errorf("%d drainers, %d aggregates: %d partitions, want %d", c.drainers, c.aggregates, got,
				c.want)
		}
	}
}

// TestCapacity_MatchesPartitions: the balancer is notified of growth at the right aggregate.
func TestCapacity_MatchesPartitions(t *testing.T) {
	for drainers := 1; drainers < 9; drainers++ {
		for aggregates := range 3000 {
			partitions := partitionsFor(drainers, aggregates)
			capacity := capacityOf(partitions)
			if aggregates > capacity {
				t.Fatalf("%d drainers: %d partitions are enough for %d, and %d live", drainers, partitions,
					capacity, aggregates)
			}
			if partitions < MaxPartitions && partitionsFor(drainers, capacity+1) <= partitions {
				t.Fatalf("%d drainers: %d partitions are enough for %d too", drainers, partitions, capacity+1)
			}
		}
	}
}

// TestSplit_NoWiderThanNeeded: a hot partition is shared by the smallest number of drainers for which the part of each
// is below a fair share, and not by all drainers.
func TestSplit_NoWiderThanNeeded(t *testing.T) {
	const drainers = 8
	for hot := 2; hot < drainers; hot++ {
		loads := slices.Repeat([]uint64{1000}, 256)
		loads[9] = uint64(255_000*hot/(drainers-hot)) - 1000 // hot fair shares
		r := newRouting(256, drainers)
		r = after(r, planRebalancing(loads, r))
		if owners := r.Owners(9); len(owners) != hot {
			t.Errorf("a partition of %d fair shares of %d went to %v", hot, drainers, owners)
		}
		if ratio := newAssignment(loads, r).loadRatio(); ratio > balanced {
			t.Errorf("%d fair shares: ratio %.3f", hot, ratio)
		}
	}
}
