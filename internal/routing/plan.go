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
	now := newAssignment(loads, r)
	fair, ratio := now.fair(), now.ratio()
	if fair == 0 {
		return keep(ratio, whyNoLoad)
	}
	if isEven := ratio < rebalanceAt; isEven {
		return merge(now, r)
	}
	next := now.clone()
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
	if !isWorthwhile || next.most() > now.most() {
		return keep(ratio, whyNoBetter)
	}
	return next.plan(r, ratio, whyUneven)
}

// merge plans to merge each split partition that has cooled: its least busy owner becomes the only one. If
// the drainers would be uneven then, the plan changes nothing.
func merge(now *assignment, r *Routing) Plan {
	ratio, cooledLoad := now.ratio(), cooled*now.fair()
	next := now.clone()
	for p, load := range now.loads {
		isSplit, hasCooled := len(now.owners[p]) > 1, float64(load) < cooledLoad
		if isSplit && hasCooled {
			next.assign(p, slices.MinFunc(now.owners[p], func(a, b uint16) int {
				return cmp.Compare(next.drained[a], next.drained[b])
			}))
		}
	}
	next.move()
	p := next.plan(r, ratio, whyMerged)
	if p.Merges == 0 || p.After > balanced {
		return keep(ratio, whyBalanced)
	}
	return p
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

// plan returns the plan that changes the owners of r to those of the assignment. ratio is the load ratio of r.
func (a *assignment) plan(r *Routing, ratio float64, why string) Plan {
	p := keep(ratio, why)
	p.After, p.owners = a.ratio(), a.owners
	for partition, owners := range a.owners {
		before := r.Owners(partition)
		switch {
		case sameOwners(before, owners):
		case len(owners) > len(before):
			p.Splits++
		case len(owners) < len(before):
			p.Merges++
		default:
			p.Moves++
		}
	}
	return p
}

// share returns the load that a partition causes for each of its owners: its load, divided by their number.
func (a *assignment) share(p int) float64 { return float64(a.loads[p]) / float64(len(a.owners[p])) }

// assign replaces the owners of a partition.
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

// idlest returns the drainer with the least load, other than the given ones.
func (a *assignment) idlest(except ...uint16) uint16 {
	least, idlest := math.Inf(1), 0
	for drainer, load := range a.drained {
		if load < least && !slices.Contains(except, uint16(drainer)) {
			least, idlest = load, drainer
		}
	}
	return uint16(idlest)
}

// heaviest returns the partition with the largest share, of those that not all drainers own, or -1.
func (a *assignment) heaviest() int {
	heaviest, most := -1, 0.0
	for p := range a.loads {
		if share := a.share(p); share > most && len(a.owners[p]) < len(a.drained) {
			heaviest, most = p, share
		}
	}
	return heaviest
}

// splitOver adds the idlest drainers to the owners of a partition, until it has at least n owners.
func (a *assignment) splitOver(n, partition int) {
	owners := slices.Clone(a.owners[partition])
	for len(owners) < min(n, len(a.drained)) {
		owners = append(owners, a.idlest(owners...))
	}
	a.assign(partition, owners...)
}

// move moves one partition at a time from the busiest drainer to the idlest, until their loads are balanced or no
// move helps. It selects the partition whose load is nearest to half of the gap between the two drainers, because
// that makes their loads most equal. Split partitions are not moved.
func (a *assignment) move() {
	whole := make([][]int, len(a.drained)) // by drainer, the partitions with load that it alone owns
	for p, owners := range a.owners {
		if len(owners) == 1 && a.loads[p] > 0 {
			whole[owners[0]] = append(whole[owners[0]], p)
		}
	}
	for range a.loads {
		if a.ratio() <= balanced {
			return
		}
		busiest, idlest := slices.Index(a.drained, a.most()), a.idlest()
		gap := a.drained[busiest] - a.drained[idlest]
		best, bestDistance := -1, gap/2
		for i, p := range whole[busiest] {
			if distance := math.Abs(float64(a.loads[p]) - gap/2); distance < bestDistance {
				best, bestDistance = i, distance
			}
		}
		if best < 0 {
			return
		}
		p := whole[busiest][best]
		whole[busiest] = slices.Delete(whole[busiest], best, best+1)
		whole[idlest] = append(whole[idlest], p)
		a.assign(p, idlest)
	}
}

// sameOwners reports whether two sets of owners are equal.
func sameOwners(a, b []uint16) bool {
	missing := func(drainer uint16) bool { return !slices.Contains(b, drainer) }
	return len(a) == len(b) && !slices.ContainsFunc(a, missing)
}
