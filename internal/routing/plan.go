package routing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// rebalanceAt is the load ratio from which the routing changes. It is well above balanced, so that traffic
	// that varies by a tenth changes nothing.
	rebalanceAt = 1.25
	// balanced is the load ratio at which a plan is good enough.
	balanced = 1.05
	// minGain is the part by which a plan must lower the load ratio. A plan that gains less would move
	// partitions in every interval for little.
	minGain = 0.07
	// mergeBelow is the part of a drainer's fair load below which a split partition is merged.
	mergeBelow = 0.5
	// maxSplits limits how many partitions a plan splits over all drainers, per drainer.
	maxSplits = 4
)

// Reasons of a plan.
const (
	whyNoLoad   = "no load"
	whyBalanced = "balanced"
	whyNoBetter = "uneven, and no assignment is better"
	whyUneven   = "uneven: rebalanced"
	whyMerged   = "cooled: merged"
)

// Plan is a new assignment of partitions to drainers.
type Plan struct {
	PlanStats
	owners [][]uint16 // by partition; nil if nothing changes
}

// PlanStats describes a plan and its reason.
type PlanStats struct {
	At           time.Time `json:"at"`
	OldLoadRatio float64   `json:"load_ratio_before"` // load of the busiest drainer over that of the idlest
	NewLoadRatio float64   `json:"load_ratio_after"`  // planned load ratio
	Moves        int       `json:"moves"`             // partitions that change their owners
	Splits       int       `json:"splits"`            // partitions that get more owners
	Merges       int       `json:"merges"`            // split partitions that go back to one owner
	Why          string    `json:"reason"`            // also if nothing changes
}

// changesOwners reports whether the plan moves, splits or merges a partition.
func (p *Plan) changesOwners() bool { return p.owners != nil }

// unchanged returns a plan that changes nothing. ratio is the load of the busiest drainer over that of
// the idlest, and why is the reason that the status shows.
func unchanged(ratio float64, why string) Plan {
	return Plan{PlanStats: PlanStats{OldLoadRatio: ratio, NewLoadRatio: ratio, Why: why}}
}

// planRebalancing assigns the partitions, parts of the key space, to drainers for the next interval. loads
// contains the load of each partition in the last interval. r is the current routing: it contains the owners of
// each partition, which are the drainers that count its spans. A partition with several owners is called split.
//
// If the drainers have about the same load, planRebalancing only merges split partitions that no longer need
// several owners. Otherwise it evens out the loads in three steps:
//
//  1. Split each partition whose load exceeds the fair load of a drainer.
//  2. Move partitions from the busiest drainer to the idlest.
//  3. If that is not enough, split the heaviest partition over all drainers, and repeat step 2.
//
// The plan changes nothing if the result is not clearly better.
func planRebalancing(loads []uint64, r *Routing) Plan {
	current := newAssignment(loads, r)
	ratio := current.loadRatio()
	if current.fairLoad() == 0 {
		return unchanged(ratio, whyNoLoad)
	}
	isEven := ratio < rebalanceAt
	if isEven {
		return planMerges(current, r)
	}
	next := current.clone()
	next.splitHeavy()
	next.moveToIdlest()
	next.splitUntilBalanced()
	isWorthwhile := next.loadRatio() <= (1-minGain)*ratio
	raisesPeak := next.highestLoad() > current.highestLoad()
	if !isWorthwhile || raisesPeak {
		return unchanged(ratio, whyNoBetter)
	}
	return next.planFrom(r, ratio, whyUneven)
}

// splitHeavy splits each partition, a part of the key space, whose load exceeds the mean load of the drainers.
// The partition is shared by more drainers, so that each of them gets at most the mean load from it.
func (a *assignment) splitHeavy() {
	meanLoad := a.fairLoad()
	for p, load := range a.loads {
		if float64(load) > meanLoad {
			wantedOwners := int(math.Ceil(float64(load) / meanLoad))
			a.splitOver(p, wantedOwners)
		}
	}
}

// splitUntilBalanced splits the heaviest partition, a part of the key space, among all drainers, then moves
// other partitions to even out the loads. It repeats this until the loads are balanced, no partition is left
// to split, or maxSplits partitions per drainer have been split.
func (a *assignment) splitUntilBalanced() {
	drainerCount := len(a.drainerLoads)
	for range maxSplits * drainerCount {
		if a.loadRatio() <= balanced {
			return
		}
		heaviest := a.findHeaviest()
		if heaviest < 0 {
			return
		}
		a.splitOver(heaviest, drainerCount)
		a.moveToIdlest()
	}
}

// planMerges returns a plan that gives each split partition (shared by several drainers) with a low load back to one
// drainer. The plan changes nothing if there is no such partition, or if the loads of the drainers would not be
// balanced afterwards. planMerges does not modify current.
func planMerges(current *assignment, r *Routing) Plan {
	oldRatio := current.loadRatio()
	next := current.clone()
	next.mergeLight()
	next.moveToIdlest() // the merged partitions may have made the loads uneven
	merged := next.planFrom(r, oldRatio, whyMerged)
	isBalanced := merged.NewLoadRatio <= balanced
	if merged.Merges > 0 && isBalanced {
		return merged
	}
	return unchanged(oldRatio, whyBalanced)
}

// mergeLight gives each partition that has several owners, but a low load, to the idlest of them.
func (a *assignment) mergeLight() {
	lowLoad := mergeBelow * a.fairLoad()
	for p, load := range a.loads {
		owners := a.owners[p]
		isSplit := len(owners) > 1
		if isSplit && float64(load) < lowLoad {
			a.assign(p, a.idlestOf(owners))
		}
	}
}

// assignment is an assignment under construction: the owners of each partition and the resulting loads.
type assignment struct {
	loads  []uint64   // by partition
	owners [][]uint16 // by partition; the slices are shared, and replaced as a whole

	drainerLoads []float64 // by drainer: the sum of its shares of partitions
}

func newAssignment(loads []uint64, routing *Routing) *assignment {
	a := &assignment{
		loads: loads, owners: make([][]uint16, len(loads)), drainerLoads: make([]float64, routing.drainers),
	}
	for p := range loads {
		a.assign(p, routing.Owners(p)...)
	}
	return a
}

func (a *assignment) clone() *assignment {
	return &assignment{
		loads: a.loads, owners: slices.Clone(a.owners), drainerLoads: slices.Clone(a.drainerLoads),
	}
}

// planFrom returns the plan that changes the owners of all partitions from those in r to those in a. It
// counts the partitions that get more owners as splits, those that get fewer as merges, and other
// changes as moves. oldRatio is the load of the busiest drainer over that of the idlest, with the owners in r.
// why is the reason shown in the statistics.
func (a *assignment) planFrom(r *Routing, oldRatio float64, why string) Plan {
	stats := PlanStats{OldLoadRatio: oldRatio, NewLoadRatio: a.loadRatio(), Why: why}
	p := Plan{owners: a.owners, PlanStats: stats}
	for partition, owners := range a.owners {
		oldOwners := r.Owners(partition)
		switch {
		case sameOwners(oldOwners, owners): // unchanged
		case len(owners) > len(oldOwners):
			p.Splits++
		case len(owners) < len(oldOwners):
			p.Merges++
		default:
			p.Moves++
		}
	}
	return p
}

// loadPerOwner returns the load that a partition causes for each of its owners: its load, divided by their number.
func (a *assignment) loadPerOwner(p int) float64 {
	return float64(a.loads[p]) / float64(len(a.owners[p]))
}

// assign gives a partition to other owners, and updates the loads of the drainers concerned.
func (a *assignment) assign(p int, owners ...uint16) {
	for _, drainer := range a.owners[p] {
		a.drainerLoads[drainer] -= a.loadPerOwner(p)
	}
	a.owners[p] = owners
	for _, drainer := range owners {
		a.drainerLoads[drainer] += a.loadPerOwner(p)
	}
}

// totalLoad returns the sum of the loads of all drainers.
func (a *assignment) totalLoad() float64 {
	sum := 0.0
	for _, load := range a.drainerLoads {
		sum += load
	}
	return sum
}

// fairLoad returns the fair load of a drainer: the total load, divided by the number of drainers.
func (a *assignment) fairLoad() float64 {
	return a.totalLoad() / float64(len(a.drainerLoads))
}

// highestLoad returns the load of the busiest drainer.
func (a *assignment) highestLoad() float64 { return slices.Max(a.drainerLoads) }

// lowestLoad returns the load of the idlest drainer.
func (a *assignment) lowestLoad() float64 { return slices.Min(a.drainerLoads) }

// busiestDrainer returns the drainer with the highest load.
func (a *assignment) busiestDrainer() uint16 {
	return uint16(slices.Index(a.drainerLoads, a.highestLoad()))
}

// idlestDrainer returns the drainer with the lowest load.
func (a *assignment) idlestDrainer() uint16 {
	return uint16(slices.Index(a.drainerLoads, a.lowestLoad()))
}

// loadRatio returns the load of the busiest drainer over that of the idlest. An idle drainer counts as one with a
// single sample, to keep the ratio finite.
func (a *assignment) loadRatio() float64 {
	return max(1, a.highestLoad()/max(1, a.lowestLoad()))
}

// idlestOf returns the drainer with the lowest load among those given.
func (a *assignment) idlestOf(drainers []uint16) uint16 {
	return slices.MinFunc(drainers, func(x, y uint16) int {
		return cmp.Compare(a.drainerLoads[x], a.drainerLoads[y])
	})
}

// idlestExcept returns the drainer with the lowest load, except for the excluded drainers.
func (a *assignment) idlestExcept(excluded ...uint16) uint16 {
	idlest, lowestLoad := 0, math.Inf(1)
	for drainer, load := range a.drainerLoads {
		if load < lowestLoad && !slices.Contains(excluded, uint16(drainer)) {
			idlest, lowestLoad = drainer, load
		}
	}
	return uint16(idlest)
}

// findHeaviest returns the partition with the highest load per owner, except for those that all drainers
// own already. It returns -1 if no other partition has load.
func (a *assignment) findHeaviest() int {
	heaviest, highestLoad := -1, 0.0
	for p := range a.loads {
		load := a.loadPerOwner(p)
		canSplit := len(a.owners[p]) < len(a.drainerLoads)
		if canSplit && load > highestLoad {
			heaviest, highestLoad = p, load
		}
	}
	return heaviest
}

// splitOver adds owners to a partition, the idlest drainers first, until it has the wanted number of
// owners, or all drainers own it. It does not remove owners.
func (a *assignment) splitOver(partition, wantedOwners int) {
	drainerCount := len(a.drainerLoads)
	owners := slices.Clone(a.owners[partition])
	for len(owners) < min(wantedOwners, drainerCount) {
		owners = append(owners, a.idlestExcept(owners...))
	}
	a.assign(partition, owners...)
}

// moveToIdlest moves partitions (parts of the key space) from the drainer with the highest load to the one with the
// lowest, one at a time. It ends when the loads are balanced, or if no move makes them more even. It does not move
// partitions that several drainers share.
func (a *assignment) moveToIdlest() {
	maxMoves := len(a.loads)
	for range maxMoves {
		if a.loadRatio() <= balanced {
			return
		}
		busiest, idlest := a.busiestDrainer(), a.idlestDrainer()
		gap := a.drainerLoads[busiest] - a.drainerLoads[idlest]
		partition, found := a.findMovable(busiest, gap/2) // a move of half the gap closes it
		if !found {
			return
		}
		a.assign(partition, idlest)
	}
}

// findMovable returns the partition whose load is nearest to wantedLoad, among those that only the given drainer owns
// and whose load is above 0 and less than twice wantedLoad. It returns false if there are none.
func (a *assignment) findMovable(owner uint16, wantedLoad float64) (partition int, found bool) {
	shortestDistance := math.Inf(1)
	for p, owners := range a.owners {
		load := float64(a.loads[p])
		isOnlyOwner := len(owners) == 1 && owners[0] == owner
		isUseful := load > 0 && load < 2*wantedLoad // moving it makes the drainers' loads more even
		if !isOnlyOwner || !isUseful {
			continue
		}
		distance := math.Abs(load - wantedLoad)
		if distance < shortestDistance {
			partition, found = p, true
			shortestDistance = distance
		}
	}
	return partition, found
}

// sameOwners reports whether two sets of owners are equal.
func sameOwners(a, b []uint16) bool {
	missing := func(drainer uint16) bool { return !slices.Contains(b, drainer) }
	return len(a) == len(b) && !slices.ContainsFunc(a, missing)
}
