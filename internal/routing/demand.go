package routing

import "sync/atomic"

// One span in sampleEvery is counted as demand. That is enough: a second of a busy daemon has
// a hundred thousand samples. A counter for every span would either be shared, and cost each
// span an atomic addition, or be the connection's own.
const sampleEvery = 32

// demand counts the sampled spans offered to each part of the key space, those that were
// dropped for want of room included: what a full ring turned away is what the balancer
// must know of. The parts are the finest that there can be, so a count outlives every
// change of the routing.
type demand struct {
	counts [MaxPartitions]atomic.Uint64 // by hash
}

func (d *demand) add(hash uint32) { d.counts[hash&(MaxPartitions-1)].Add(1) }

// since moves seen up to now, and returns by how much, added up into partitions.
func (d *demand) since(seen *[MaxPartitions]uint64, partitions int) []uint64 {
	loads := make([]uint64, partitions)
	for i := range d.counts {
		now := d.counts[i].Load()
		loads[i&(partitions-1)] += now - seen[i]
		seen[i] = now
	}
	return loads
}
