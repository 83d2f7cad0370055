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
	// worthwhile is the largest ratio of the load ratios after and before a plan. A plan that gains less would
	// move partitions in every interval for little.
	worthwhile = 0.93
	// cooled is the part of a drainer's fair load below which a split partition is merged.
	cooled = 0.5
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
	At     time.Time `json:"at"`
	Before float64   `json:"load_ratio_before"` // load of the busiest drainer over that of the idlest
	After  float64   `json:"load_ratio_after"`  // as planned
	Moves  int       `json:"moves"`             // partitions that change their owners
	Splits int       `json:"splits"`            // partitions that get more owners
	Merges int       `json:"merges"`            // split partitions that go back to one owner
	Why    string    `json:"reason"`            // also if nothing changes
}

// keep returns the plan that changes nothing.
func keep(ratio float64, why string) Plan {
	return Plan{PlanStats: PlanStats{Before: ratio, After: ratio, Why: why}}
}

// plan returns the plan for the next routing, given the current one and the load of each partition in the last
// interval. It depends on nothing else, so tests can state its properties.
//
// If the drainers are even, it only merges partitions. Otherwise it improves the assignment in three steps:
//
//  1. Split each partition whose load exceeds the fair load of a drainer, over just enough drainers.
//  2. Move whole partitions from the busiest drainer to the idlest.
//  3. While the drainers are uneven, because too few partitions have load: split the heaviest partition over
//     all drainers, and repeat step 2.
func plan(loads []uint64, r *Routing) Plan {
	current := newAssignment(loads, r)
	fair, ratio := current.fair(), current.ratio()
	if fair == 0 {
		return keep(ratio, whyNoLoad)
	}
	if isEven := ratio < rebalanceAt; isEven {
		return merge(current, r)
	}
	next := current.clone()
	for p, load := range loads {
		if float64(load) > fair {
			next.splitOver(int(math.Ceil(float64(load)/fair)), p)
		}
	}
	next.move()
	for range maxSplits * r.drainers {
		heaviest := next.heaviest()
		if next.ratio() <= balanced || heaviest < 0 {
			break
		}
		next.splitOver(r.drainers, heaviest)
		next.move()
	}
	isWorthwhile := next.ratio() <= worthwhile*ratio
	if !isWorthwhile || next.most() > current.most() {
		return keep(ratio, whyNoBetter)
	}
	return next.plan(r, ratio, whyUneven)
}

// merge returns a plan that gives each split partition with little load to a single drainer: the least
// busy of its owners. If the loads of the drainers would be uneven then, the plan changes nothing.
func merge(current *assignment, r *Routing) Plan {
	ratio := current.ratio()
	littleLoad := cooled * current.fair()
	next := current.clone()
	for p, load := range current.loads {
		owners := current.owners[p]
		isSplit := len(owners) > 1
		if isSplit && float64(load) < littleLoad {
			leastBusy := slices.MinFunc(owners, func(a, b uint16) int {
				return cmp.Compare(next.drained[a], next.drained[b])
			})
			next.assign(p, leastBusy)
		}
	}
	next.move()
	merged := next.plan(r, ratio, whyMerged)
	if merged.Merges == 0 || merged.After > balanced {
		return keep(ratio, whyBalanced)
	}
	return merged
}

// assignment is an assignment under construction: the owners of each partition and the resulting loads.
type assignment struct {
	loads   []uint64   // by partition
	owners  [][]uint16 // by partition; the slices are shared, and replaced as a whole
	drained []float64  // by drainer, the load: the sum of its shares of partitions
}

func newAssignment(loads []uint64, routing *Routing) *assignment {
	a := &assignment{loads: loads, owners: make([][]uint16, len(loads)), drained: make([]float64, routing.drainers)}
	for p := range loads {
		a.assign(p, routing.Owners(p)...)
	}
	return a
}

func (a *assignment) clone() *assignment {
	return &assignment{loads: a.loads, owners: slices.Clone(a.owners), drained: slices.Clone(a.drained)}
}

// plan returns the plan that gives the partitions the owners of the assignment. r is the current
// routing, and ratio is its load ratio. why is the reason that the status shows.
func (a *assignment) plan(r *Routing, ratio float64, why string) Plan {
	p := keep(ratio, why)
	p.After = a.ratio()
	p.owners = a.owners
	for partition, owners := range a.owners {
		current := r.Owners(partition)
		switch {
		case sameOwners(current, owners):
		case len(owners) > len(current):
			p.Splits++
		case len(owners) < len(current):
			p.Merges++
		default:
			p.Moves++
		}
	}
	return p
}

// share returns the load that a partition causes for each of its owners: its load, divided by their number.
func (a *assignment) share(p int) float64 { return float64(a.loads[p]) / float64(len(a.owners[p])) }

// assign gives a partition to other owners, and updates the loads of the drainers concerned.
func (a *assignment) assign(p int, owners ...uint16) {
	for _, drainer := range a.owners[p] {
		a.drained[drainer] -= a.share(p)
	}
	a.owners[p] = owners
	for _, drainer := range owners {
		a.drained[drainer] += a.share(p)
	}
}

// fair returns the fair load of a drainer: the total load, divided by the number of drainers.
func (a *assignment) fair() float64 {
	sum := 0.0
	for _, load := range a.drained {
		sum += load
	}
	return sum / float64(len(a.drained))
}

// most returns the load of the busiest drainer.
func (a *assignment) most() float64 { return slices.Max(a.drained) }

// ratio returns the load of the busiest drainer over that of the idlest. An idle drainer counts as one with a
// single sample, to keep the ratio finite.
func (a *assignment) ratio() float64 { return max(1, a.most()/max(1, slices.Min(a.drained))) }

// idlest returns the drainer with the lowest load, except for the excluded drainers.
func (a *assignment) idlest(excluded ...uint16) uint16 {
	idlest, lowestLoad := 0, math.Inf(1)
	for drainer, load := range a.drained {
		if load < lowestLoad && !slices.Contains(excluded, uint16(drainer)) {
			idlest, lowestLoad = drainer, load
		}
	}
	return uint16(idlest)
}

// heaviest returns the partition that causes the highest load per owner. It ignores partitions that all
// drainers own already, and returns -1 if no other partition has load.
func (a *assignment) heaviest() int {
	heaviest, highestShare := -1, 0.0
	for p := range a.loads {
		share := a.share(p)
		canSplit := len(a.owners[p]) < len(a.drained)
		if canSplit && share > highestShare {
			heaviest, highestShare = p, share
		}
	}
	return heaviest
}

// splitOver adds the idlest drainers to the owners of a partition, until it has n owners or all drainers
// own it. It never removes an owner.
func (a *assignment) splitOver(n, partition int) {
	wanted := min(n, len(a.drained))
	owners := slices.Clone(a.owners[partition])
	for len(owners) < wanted {
		owners = append(owners, a.idlest(owners...))
	}
	a.assign(partition, owners...)
}

// move moves partitions from the busiest drainer to the idlest, one at a time, until the loads of the
// drainers are balanced or no move makes them more even. It does not move split partitions.
func (a *assignment) move() {
	movable := make([][]int, len(a.drained)) // by drainer: partitions with load that it alone owns
	for p, owners := range a.owners {
		if len(owners) == 1 && a.loads[p] > 0 {
			movable[owners[0]] = append(movable[owners[0]], p)
		}
	}
	for range a.loads {
		if a.ratio() <= balanced {
			return
		}
		busiest, idlest := slices.Index(a.drained, a.most()), a.idlest()
		gap := a.drained[busiest] - a.drained[idlest]
		index := a.nearestLoad(movable[busiest], gap/2)
		if index < 0 {
			return
		}
		p := movable[busiest][index]
		movable[busiest] = slices.Delete(movable[busiest], index, index+1)
		movable[idlest] = append(movable[idlest], p)
		a.assign(p, idlest)
	}
}

// nearestLoad returns the index of the partition whose load is nearest to wanted. It returns -1 if every
// load is 0 or at least twice as high as wanted.
func (a *assignment) nearestLoad(partitions []int, wanted float64) int {
	nearest, shortestDistance := -1, wanted
	for i, p := range partitions {
		distance := math.Abs(float64(a.loads[p]) - wanted)
		if distance < shortestDistance {
			nearest, shortestDistance = i, distance
		}
	}
	return nearest
}

// sameOwners reports whether two sets of owners are equal.
func sameOwners(a, b []uint16) bool {
	missing := func(drainer uint16) bool { return !slices.Contains(b, drainer) }
	return len(a) == len(b) && !slices.ContainsFunc(a, missing)
}
