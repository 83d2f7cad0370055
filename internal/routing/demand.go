package routing

import "sync/atomic"

// sampled is of how many spans one is counted as demand. One in 32 is evidence
// enough: a second of a busy daemon has a hundred thousand of them. A counter
// for every span would either be shared, and cost each span an atomic addition,
// or be the connection's own, 16 KiB of them for each.
const sampled = 32

// demand counts the spans offered to each share of the key space, those that
// were dropped for want of room included: what a full ring turned away is what
// the balancer must know of. The shares are the finest there can be, so a count
// outlives every change of the routing.
type demand struct {
	counts [MaxPartitions]atomic.Uint64 // of noted spans, by hash
}

func (d *demand) add(hash uint32) { d.counts[hash&(MaxPartitions-1)].Add(1) }

// since moves seen up to now, and returns by how much, folded into partitions.
func (d *demand) since(seen *[MaxPartitions]uint64, partitions int) []uint64 {
	loads := make([]uint64, partitions)
	for i := range d.counts {
		now := d.counts[i].Load()
		loads[i&(partitions-1)] += now - seen[i]
		seen[i] = now
	}
	return loads
}
