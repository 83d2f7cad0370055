package routing

import "slices"

// Routing is the map from partition to drainer. It is immutable: a change is a new value
// with the next epoch.
type Routing struct {
	epoch    uint64 // counts the routings up from 1
	drainers int
	mask     uint32 // of a hash, its partition
	// owner is by partition the drainer that owns it, or where several do, the number of
	// drainers plus the place of them in spread.
	owner  []uint16
	spread [][]uint16
}

// newRouting assigns partitions to drainers in turn.
func newRouting(partitions, drainers int) *Routing {
	r := &Routing{
		epoch: 1, mask: uint32(partitions - 1), drainers: drainers,
		owner: make([]uint16, partitions),
	}
	for p := range r.owner {
		r.owner[p] = uint16(p % drainers)
	}
	return r
}

// drainer is the one that gets the spans of a hash in a batch that has this number.
func (r *Routing) drainer(hash, batch uint32) int {
	owner := int(r.owner[hash&r.mask])
	if owner < r.drainers {
		return owner
	}
	owners := r.spread[owner-r.drainers]
	return int(owners[batch%uint32(len(owners))])
}

// Partitions is the number of parts that the key space is cut into.
func (r *Routing) Partitions() int { return len(r.owner) }

// Owners are the drainers of a partition: one, or several where it is spread. They must
// not be changed.
func (r *Routing) Owners(partition int) []uint16 {
	if r.isSpread(partition) {
		return r.spread[int(r.owner[partition])-r.drainers]
	}
	return r.owner[partition : partition+1]
}

func (r *Routing) isSpread(partition int) bool { return int(r.owner[partition]) >= r.drainers }

// Grown is the routing with twice as many partitions or more. It cuts each partition in two
// that have its owners, so no key changes its drainer.
func (r *Routing) Grown(partitions int) *Routing {
	owners := make([][]uint16, partitions)
	for p := range owners {
		owners[p] = r.Owners(p & int(r.mask))
	}
	return r.Next(owners)
}

// Next is the routing that follows, with these owners by partition.
func (r *Routing) Next(owners [][]uint16) *Routing {
	n := newRouting(len(owners), r.drainers)
	n.epoch = r.epoch + 1
	for p, drainers := range owners {
		if len(drainers) == 1 {
			n.owner[p] = drainers[0]
			continue
		}
		n.owner[p] = uint16(n.drainers + len(n.spread))
		n.spread = append(n.spread, slices.Clone(drainers))
	}
	return n
}
