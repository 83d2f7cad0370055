package routing

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// The drainers are levelled from the ratio uneven on, towards levelled. Between the two
// lies what a little more traffic here or there changes each interval anyway. Partitions
// that are not too much for one drainer are spread where the ratio would stay above
// tolerated otherwise, and gathered where the drainers stay levelled.
const (
	uneven     = 1.15
	tolerated  = 1.1
	worthwhile = 0.93 // of the ratio before; a plan that gains less is not worth its moves
)

// Plan is a new assignment and what it is good for.
type Plan struct {
	PlanStats
	owners [][]uint16 // nil: everything stays
}

// PlanStats is a plan, and why it was made.
type PlanStats struct {
	At      time.Time `json:"at"`
	Before  float64   `json:"load_ratio_before"` // of the busiest drainer over the idlest
	After   float64   `json:"load_ratio_after"`  // as planned
	Moves   int       `json:"moves"`             // partitions that change their owners
	Spreads int       `json:"spreads"`           // partitions that are owned by more drainers than before
	Gathers int       `json:"gathers"`           // spread partitions that go back to one owner
	Why     string    `json:"why"`               // also where nothing is to be done
}

// stay is the plan that changes nothing.
func stay(ratio float64, why string) Plan {
	return Plan{PlanStats: PlanStats{Before: ratio, After: ratio, Why: why}}
}

// The reasons of a plan that it shares with tests.
const (
	whyNoLoad   = "no load"
	whyLevel    = "level"
	whyNoBetter = "uneven, and no assignment is better"
	whyLevelled = "uneven: levelled"
	whyGathered = "cooled: gathered"
)

// plan levels the drainers. It is a function of the loads by partition, of who
// owns what, and of nothing else.
//
// A partition above a drainer's fair share is spread over as many as it takes to bring each
// share below that. The rest is levelled by moving whole partitions, as few as possible. If
// the drainers are still uneven, because few partitions have load and those are heavy, the
// heaviest are spread over all drainers.
func plan(loads []uint64, r *Routing) Plan {
	now := newLayout(loads, r)
	fair, ratio := now.fair(), now.ratio()
	switch {
	case fair == 0:
		return stay(ratio, whyNoLoad)
	case ratio < uneven:
		return stay(ratio, whyLevel)
	}
	next := now.clone()
	for p, load := range loads {
		if float64(load) > fair {
			next.spread(p, int(math.Ceil(float64(load)/fair)))
		}
	}
	next.level()
	finer := next.clone()
	for range 4 * r.drainers {
		heaviest := finer.heaviest()
		if next.ratio() <= tolerated || heaviest < 0 {
			break
		}
		finer.spread(heaviest, r.drainers)
		finer.level()
		if finer.ratio() < next.ratio() {
			next = finer.clone()
		}
	}
	if next.ratio() > worthwhile*ratio || next.most() > now.most() {
		return stay(ratio, whyNoBetter)
	}
	return planFor(next, r, ratio, whyLevelled)
}

// gather gives spread partitions of low load back to one owner each, the one of theirs
// that has least, where the drainers stay level.
func gather(loads []uint64, r *Routing, low []int) Plan {
	next := newLayout(loads, r)
	ratio, why := next.ratio(), whyLevel
	for _, p := range low {
		together := next.clone()
		together.assign(p, slices.MinFunc(next.owners[p], func(a, b uint16) int {
			return cmp.Compare(next.drained[a], next.drained[b])
		}))
		together.move()
		if together.ratio() <= levelled {
			next, why = together, whyGathered
		}
	}
	if why == whyLevel {
		return stay(ratio, why)
	}
	return planFor(next, r, ratio, why)
}

// planFor is the plan that leads from a routing of that ratio to a layout.
func planFor(next *layout, r *Routing, ratio float64, why string) Plan {
	p := stay(ratio, why)
	p.After, p.owners = next.ratio(), next.owners
	for partition, owners := range next.owners {
		before := r.Owners(partition)
		switch {
		case sameOwners(before, owners):
		case len(owners) > len(before):
			p.Spreads++
		case len(owners) < len(before):
			p.Gathers++
		default:
			p.Moves++
		}
	}
	return p
}

// levelled is up to which load ratio there is nothing to even out.
const levelled = 1.05

// layout is an assignment under construction: who owns what, and how much that is.
type layout struct {
	loads   []uint64   // by partition
	owners  [][]uint16 // by partition; the slices are shared, and replaced whole
	drained []float64  // by drainer, the sum of its partitions and shares of partitions
}

func newLayout(loads []uint64, r *Routing) *layout {
	l := &layout{loads: loads, owners: make([][]uint16, len(loads)), drained: make([]float64, r.drainers)}
	for p := range loads {
		l.assign(p, r.Owners(p)...)
	}
	return l
}

func (l *layout) clone() *layout {
	return &layout{loads: l.loads, owners: slices.Clone(l.owners), drained: slices.Clone(l.drained)}
}

// share is what each owner of a partition has of it.
func (l *layout) share(p int) float64 { return float64(l.loads[p]) / float64(len(l.owners[p])) }

// assign gives a partition to other owners, or to none.
func (l *layout) assign(p int, owners ...uint16) {
	for _, drainer := range l.owners[p] {
		l.drained[drainer] -= l.share(p)
	}
	l.owners[p] = owners
	for _, drainer := range owners {
		l.drained[drainer] += l.share(p)
	}
}

// fair is a drainer's load if all had the same.
func (l *layout) fair() float64 {
	sum := 0.0
	for _, load := range l.drained {
		sum += load
	}
	return sum / float64(len(l.drained))
}

func (l *layout) most() float64 { return slices.Max(l.drained) }

// ratio is the load of the busiest drainer over that of the idlest. A drainer
// with nothing counts as one with a single sample, to keep it a number.
func (l *layout) ratio() float64 { return max(1, l.most()/max(1, slices.Min(l.drained))) }

// idlest is the drainer with the least load of those that are not excluded.
func (l *layout) idlest(without ...uint16) uint16 {
	least, idlest := math.Inf(1), 0
	for drainer, load := range l.drained {
		if load < least && !slices.Contains(without, uint16(drainer)) {
			least, idlest = load, drainer
		}
	}
	return uint16(idlest)
}

// heaviest is the partition with the largest share that could be spread further, or -1.
func (l *layout) heaviest() int {
	heaviest, most := -1, 0.0
	for p := range l.loads {
		if share := l.share(p); share > most && len(l.owners[p]) < len(l.drained) {
			heaviest, most = p, share
		}
	}
	return heaviest
}

// spread gives a partition to n drainers at least; those that own it keep it.
func (l *layout) spread(p, n int) {
	owners := slices.Clone(l.owners[p])
	for n = min(n, len(l.drained)); len(owners) < n; {
		owners = append(owners, l.idlest(owners...))
	}
	l.assign(p, owners...)
}

// level evens the drainers out: by a few moves, or by assigning everything anew where
// that is clearly better.
func (l *layout) level() {
	l.move()
	if l.ratio() <= levelled {
		return
	}
	anew := l.clone()
	anew.assignAnew()
	if anew.ratio() <= l.ratio()-(levelled-1) {
		*l = *anew
	}
}

// move moves one partition at a time from the busiest drainer to the idlest, the one
// that comes nearest to closing the gap between the two.
func (l *layout) move() {
	whole := make([][]int, len(l.drained)) // by drainer, the partitions with load that it alone owns
	for p, owners := range l.owners {
		if len(owners) == 1 && l.loads[p] > 0 {
			whole[owners[0]] = append(whole[owners[0]], p)
		}
	}
	for range l.loads {
		if l.ratio() <= levelled {
			return
		}
		busiest, idlest := slices.Index(l.drained, l.most()), l.idlest()
		gap := l.drained[busiest] - l.drained[idlest]
		best, distance := -1, gap/2
		for i, p := range whole[busiest] {
			if off := math.Abs(float64(l.loads[p]) - gap/2); off < distance {
				best, distance = i, off
			}
		}
		if best < 0 {
			return
		}
		p := whole[busiest][best]
		whole[busiest] = slices.Delete(whole[busiest], best, best+1)
		whole[idlest] = append(whole[idlest], p)
		l.assign(p, idlest)
	}
}

// assignAnew assigns every partition with load anew: the heaviest first, each to the
// drainer that has least so far, and each share of a spread one to another drainer. This
// is Graham's rule (longest processing time first), never worse than 4/3 of the best.
func (l *layout) assignAnew() {
	var order []int
	for p, load := range l.loads {
		if load > 0 {
			order = append(order, p)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.share(b), l.share(a)) })
	before := slices.Clone(l.owners)
	for _, p := range order {
		l.assign(p)
	}
	for _, p := range order {
		l.spread(p, len(before[p]))
	}
}

// sameOwners compares sets.
func sameOwners(a, b []uint16) bool {
	isOther := func(drainer uint16) bool { return !slices.Contains(b, drainer) }
	return len(a) == len(b) && !slices.ContainsFunc(a, isOther)
}
