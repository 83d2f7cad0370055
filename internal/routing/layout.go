package routing

import (
	"cmp"
	"math"
	"slices"
)

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
