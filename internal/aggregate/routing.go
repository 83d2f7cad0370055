package aggregate

// Routing is the published map from partition to drainer: the one value that
// says who owns what. It is immutable; a change is a new value.
type Routing struct {
	mask   uint32
	owners []uint16 // by partition, the drainer whose ring gets its slots
}

// partitionsPerDrainer makes the shares of the key space fine enough that the
// hash levels them.
const partitionsPerDrainer = 16

// newRouting deals partitions to drainers in turn.
func newRouting(drainers int) *Routing {
	partitions := 1
	for partitions < drainers*partitionsPerDrainer {
		partitions *= 2
	}
	r := &Routing{mask: uint32(partitions - 1), owners: make([]uint16, partitions)}
	for p := range r.owners {
		r.owners[p] = uint16(p % drainers)
	}
	return r
}

// Drainer is the number of the drainer that owns the partition of hash.
func (r *Routing) Drainer(hash uint32) int { return int(r.owners[hash&r.mask]) }

// Partitions is the number of shares that the key space is cut into.
func (r *Routing) Partitions() int { return len(r.owners) }
