package routing

import "math"

// The drainers are levelled from the ratio uneven on, towards levelled. Between the two
// lies what a little more traffic here or there changes each interval anyway. Partitions
// that are not too much for one drainer are spread where the ratio would stay above
// tolerated otherwise, and gathered where the drainers stay levelled.
const (
	uneven     = 1.15
	tolerated  = 1.1
	levelled   = 1.05
	worthwhile = 0.93 // of the ratio before; a plan that gains less is not worth its moves
)

// Plan is a new assignment and what it is good for.
type Plan struct {
	Before, After float64 // load of the busiest drainer over that of the idlest
	Moves         int     // partitions that change their owners
	Spreads       int     // partitions that are owned by more drainers than before
	Gathers       int     // spread partitions that go back to one owner
	Why           string  // also where nothing is to be done

	owners [][]uint16 // nil: everything stays
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
// A partition above a drainer's fair share is spread over as many as it takes to
// bring each share below that. What is left is levelled with whole partitions, by
// as few moves as do it. Where even that leaves the drainers uneven, because there
// are few partitions with load and those are heavy, the heaviest are spread over all
// drainers.
func plan(loads []uint64, r *Routing) Plan {
	now := newLayout(loads, r)
	result := Plan{Before: now.ratio(), After: now.ratio()}
	fair := now.fair()
	switch {
	case fair == 0:
		result.Why = whyNoLoad
		return result
	case now.ratio() < uneven:
		result.Why = whyLevel
		return result
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
	if next.ratio() > worthwhile*now.ratio() || next.most() > now.most() {
		result.Why = whyNoBetter
		return result
	}
	result.Why = whyLevelled
	return result.leadingTo(next, r)
}

// gather gives spread partitions of low load back to one owner each, the one of theirs
// that has least, where the drainers stay level.
func gather(loads []uint64, r *Routing, low []int) Plan {
	next := newLayout(loads, r)
	result := Plan{Before: next.ratio(), After: next.ratio(), Why: whyLevel}
	for _, p := range low {
		together := next.clone()
		owner := next.owners[p][0]
		for _, drainer := range next.owners[p] {
			if next.drained[drainer] < next.drained[owner] {
				owner = drainer
			}
		}
		together.assign(p, owner)
		together.move()
		if together.ratio() <= levelled {
			next, result.Why = together, whyGathered
		}
	}
	if result.Why == whyLevel {
		return result
	}
	return result.leadingTo(next, r)
}

// leadingTo completes a plan that leads from a routing to a layout.
func (p Plan) leadingTo(next *layout, r *Routing) Plan {
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
