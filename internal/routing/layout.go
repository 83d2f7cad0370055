package routing

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// layout is a routing in the making: who owns what, and how much that is.
type layout struct {
	loads   []uint64   // by partition
	owners  [][]uint16 // by partition; the slices are shared, and replaced whole
	drained []float64  // by drainer, what its partitions and shares of partitions sum up to
}

func newLayout(loads []uint64, r *Routing) *layout {
	l := &layout{loads: loads, owners: make([][]uint16, len(loads)), drained: make([]float64, r.drainers)}
	for p := range loads {
		l.owners[p] = r.Owners(p)
		l.put(p, 1)
	}
	return l
}

func (l *layout) clone() *layout {
	return &layout{loads: l.loads, owners: slices.Clone(l.owners), drained: slices.Clone(l.drained)}
}

// piece is what each owner of a partition has of it.
func (l *layout) piece(p int) float64 { return float64(l.loads[p]) / float64(len(l.owners[p])) }

// put adds a partition to its owners' sums, or with -1 takes it away.
func (l *layout) put(p int, sign float64) {
	for _, drainer := range l.owners[p] {
		l.drained[drainer] += sign * l.piece(p)
	}
}

// give makes the owners of a partition others.
func (l *layout) give(p int, owners ...uint16) {
	l.put(p, -1)
	l.owners[p] = owners
	l.put(p, 1)
}

func (l *layout) fair() float64 {
	sum := 0.0
	for _, load := range l.drained {
		sum += load
	}
	return sum / float64(len(l.drained))
}

func (l *layout) most() float64 { return slices.Max(l.drained) }

// ratio is the load of the busiest drainer over that of the idlest. A drainer
// with nothing counts as one with a single noted span, to keep it a number.
func (l *layout) ratio() float64 { return max(1, l.most()/max(1, slices.Min(l.drained))) }

// idlest is the drainer with the least load of those that are not excluded.
func (l *layout) idlest(without []uint16) uint16 {
	least, idlest := math.Inf(1), 0
	for drainer, load := range l.drained {
		if load < least && !slices.Contains(without, uint16(drainer)) {
			least, idlest = load, drainer
		}
	}
	return uint16(idlest)
}

// cut spreads a partition over more drainers, n at least; those that have it
// keep their share.
func (l *layout) cut(p, n int) {
	owners := slices.Clone(l.owners[p])
	for n = min(n, len(l.drained)); len(owners) < n; {
		owners = append(owners, l.idlest(owners))
	}
	l.give(p, owners...)
}

// level evens the drainers out: by the few moves that do it, or where dealing
// everything anew does it clearly better by that.
func (l *layout) level() {
	l.shift()
	if l.ratio() <= levelled {
		return
	}
	anew := l.clone()
	anew.deal()
	if anew.ratio() <= l.ratio()-(levelled-1) {
		*l = *anew
	}
}

// shift moves one partition at a time from the busiest drainer to the idlest,
// the one that comes nearest to closing the gap between the two.
func (l *layout) shift() {
	mine := make([][]int, len(l.drained)) // by drainer, its whole partitions with load
	for p, owners := range l.owners {
		if len(owners) == 1 && l.loads[p] > 0 {
			mine[owners[0]] = append(mine[owners[0]], p)
		}
	}
	for range l.loads {
		if l.ratio() <= levelled {
			return
		}
		busiest, idlest := slices.Index(l.drained, l.most()), int(l.idlest(nil))
		gap := l.drained[busiest] - l.drained[idlest]
		best, distance := -1, gap/2
		for i, p := range mine[busiest] {
			if off := math.Abs(float64(l.loads[p]) - gap/2); off < distance {
				best, distance = i, off
			}
		}
		if best < 0 {
			return
		}
		p := mine[busiest][best]
		mine[busiest] = slices.Delete(mine[busiest], best, best+1)
		mine[idlest] = append(mine[idlest], p)
		l.give(p, uint16(idlest))
	}
}

// deal gives every partition with load anew: longest first, each to the drainer
// that has least so far, and each share of a spread one to another drainer. It
// is Graham's rule, never worse than 4/3 of the best there is. Then the hands are
// named such that as many partitions as possible stay where they are.
func (l *layout) deal() {
	var order []int
	for p, load := range l.loads {
		if load > 0 {
			order = append(order, p)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.piece(b), l.piece(a)) })
	hands := &layout{loads: l.loads, owners: make([][]uint16, len(l.loads)), drained: make([]float64, len(l.drained))}
	for _, p := range order {
		var owners []uint16
		for range l.owners[p] {
			owners = append(owners, hands.idlest(owners))
		}
		hands.owners[p] = owners
		hands.put(p, 1)
	}
	names := l.names(hands, order)
	for _, p := range order {
		owners := hands.owners[p]
		for i := range owners {
			owners[i] = names[owners[i]]
		}
		if !sameOwners(owners, l.owners[p]) {
			l.give(p, owners...)
		}
	}
}

// names finds for each hand the drainer that has most of its partitions already.
func (l *layout) names(hands *layout, order []int) []uint16 {
	common := map[[2]uint16]int{} // by hand and drainer
	for _, p := range order {
		for _, hand := range hands.owners[p] {
			for _, drainer := range l.owners[p] {
				common[[2]uint16{hand, drainer}]++
			}
		}
	}
	pairs := slices.SortedFunc(maps.Keys(common), func(a, b [2]uint16) int {
		return cmp.Or(cmp.Compare(common[b], common[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	names, taken := make([]uint16, len(l.drained)), make([]bool, len(l.drained))
	named := make([]bool, len(l.drained))
	name := func(hand, drainer uint16) {
		if !named[hand] && !taken[drainer] {
			names[hand], named[hand], taken[drainer] = drainer, true, true
		}
	}
	for _, pair := range pairs {
		name(pair[0], pair[1])
	}
	for hand := range names {
		for drainer := range names {
			name(uint16(hand), uint16(drainer))
		}
	}
	return names
}

// sameOwners compares sets.
func sameOwners(a, b []uint16) bool {
	if len(a) != len(b) {
		return false
	}
	for _, drainer := range a {
		if !slices.Contains(b, drainer) {
			return false
		}
	}
	return true
}
