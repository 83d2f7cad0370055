package routing

import "slices"

// Routing is the published map from partition to drainer: the one value that
// says who owns what. It is immutable; a change is a new value with the next
// epoch, behind the one pointer.
//
// A partition leads to a lane. The first lanes are the drainers themselves. Each
// further one is a partition that is spread: it leads to one of several drainers,
// chosen anew for each batch. So a spread partition costs a span nothing that
// another one would not cost too.
type Routing struct {
	epoch    uint64
	mask     uint32
	drainers int
	lanes    Lanes
	spread   [][]uint16 // by lane beyond the drainers, who shares the partition
}

// Lanes are the lanes of a routing, by partition. With a place for each hash there is one
// mask less, but they are looked at once a span, and what is read of them no longer fits
// the processor's first cache: a span with a number cost 44 ns instead of 40.
type Lanes []uint16

// Of is the lane of a hash.
func (l Lanes) Of(hash uint32) uint16 { return l[hash&uint32(len(l)-1)] }

// newRouting deals partitions to drainers in turn.
func newRouting(partitions, drainers int) *Routing {
	r := &Routing{epoch: 1, mask: uint32(partitions - 1), drainers: drainers, lanes: make([]uint16, partitions)}
	for p := range r.lanes {
		r.lanes[p] = uint16(p % drainers)
	}
	return r
}

// Epoch counts the routings up from 1.
func (r *Routing) Epoch() uint64 { return r.epoch }

// Partitions is the number of shares that the key space is cut into.
func (r *Routing) Partitions() int { return len(r.lanes) }

// Owners are the drainers that get the slots of a partition: one, or several
// where it is spread. They must not be changed.
func (r *Routing) Owners(partition int) []uint16 {
	lane := int(r.lanes[partition])
	if lane < r.drainers {
		return []uint16{uint16(lane)}
	}
	return r.spread[lane-r.drainers]
}

// Drainers is how many there are.
func (r *Routing) Drainers() int { return r.drainers }

// isSpread reports whether a partition has several owners.
func (r *Routing) isSpread(partition int) bool { return int(r.lanes[partition]) >= r.drainers }

// Resized is the routing with twice as many partitions or more, or half as many
// or fewer. A finer one cuts each partition in two that have its owners, so no
// key changes its drainer. A coarser one gives both halves to the first's.
func (r *Routing) Resized(partitions int) *Routing {
	owners := make([][]uint16, partitions)
	for p := range owners {
		owners[p] = r.Owners(p & int(r.mask))
	}
	return r.Next(owners)
}

// Next is the routing that follows, with these owners by partition.
func (r *Routing) Next(owners [][]uint16) *Routing {
	n := &Routing{
		epoch: r.epoch + 1, mask: uint32(len(owners) - 1), drainers: r.drainers,
		lanes: make([]uint16, len(owners)),
	}
	for p, drainers := range owners {
		if len(drainers) == 1 {
			n.lanes[p] = drainers[0]
			continue
		}
		n.lanes[p] = uint16(n.drainers + len(n.spread))
		n.spread = append(n.spread, slices.Clone(drainers))
	}
	return n
}
