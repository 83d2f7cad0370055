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
