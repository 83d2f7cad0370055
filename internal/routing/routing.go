// Package routing assigns parts of the key space to drainers. It knows no keys, tables, cycles or rings.
//
// The key space is divided into partitions by the low bits of a key's hash. A Routing maps each partition to
// its owners, which are drainers. Most partitions have one owner. A split partition has several, one of which
// is selected at random for each batch. Publishers read the Routing through a Route. The Balancer counts the
// spans of each partition (demand), plans an assignment in which the drainers have even loads (planRebalancing, a pure
// function), and makes it the current Routing. To split a partition is to give it more owners; to merge it
// is to give it back to one owner.
//
// # Why a change needs no coordination
//
// Which drainer counts a key affects only the load, not correctness: every drainer has a table with room for
// any key, and the flusher merges rows by key. So a change is one store of a pointer. A publisher with the old
// value uses it for one more batch, which does no harm. A key that moves costs one more row in that cycle.
//
// # Concurrency
//
// A Routing is immutable. Only the Balancer's goroutine changes the current one; publishers load it once per
// batch. A Route belongs to one goroutine. Demand counters are atomic, and only the Balancer reads them. Stats
// is safe for concurrent use.
//
// # Limits
//
// There are at most MaxPartitions partitions, and as many demand counters. Publishers and the Balancer never
// wait for each other.
package routing

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

// Routing maps partitions to drainers. It is immutable; a change creates a new Routing with the
// next epoch.
type Routing struct {
	epoch    uint64 // 1 for the first routing of the daemon, 2 for the second one, and so on
	drainers int
	mask     uint32 // hash & mask is the partition

	// owner contains, by partition, the owner if there is only one. For a split partition it contains
	// drainers+i, where splitOwners[i] contains the owners.
	owner       []uint16
	splitOwners [][]uint16
}

// newRouting returns the first routing, with epoch 1. It assigns the partitions, parts of the key
// space, to the drainers in turn. The number of partitions must be a power of two.
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

// drainer returns the number of the drainer that counts the spans of a key with the given hash. If
// several drainers share the partition of the key, random selects one of them.
func (r *Routing) drainer(hash, random uint32) int {
	partition := int(hash & r.mask)
	if !r.isSplit(partition) {
		return int(r.owner[partition])
	}
	owners := r.Owners(partition)
	return int(owners[random%uint32(len(owners))])
}

// Partitions returns the number of partitions.
func (r *Routing) Partitions() int { return len(r.owner) }

// Owners returns the drainers that count the spans of a partition, a part of the key space: one or
// several. The caller must not modify the result.
func (r *Routing) Owners(partition int) []uint16 {
	if r.isSplit(partition) {
		return r.splitOwners[int(r.owner[partition])-r.drainers]
	}
	return r.owner[partition : partition+1]
}

// isSplit reports whether a partition has several owners.
func (r *Routing) isSplit(partition int) bool { return int(r.owner[partition]) >= r.drainers }

// Subdivide returns a routing in which each partition of r is divided into equal parts, so that there
// are the given number of partitions, a power of two. The parts have the owners of the partition, so no
// key changes its owners.
func (r *Routing) Subdivide(partitions int) *Routing {
	owners := make([][]uint16, partitions)
	for partition := range owners {
		oldPartition := partition & int(r.mask) // both are the low bits of a key's hash
		owners[partition] = r.Owners(oldPartition)
	}
	return r.WithOwners(owners)
}

// WithOwners returns a routing with new owners of the partitions, and with the next epoch after that of r. The drainers
// in owners[p] count the spans of partition p. The number of partitions is len(owners).
func (r *Routing) WithOwners(owners [][]uint16) *Routing {
	next := newRouting(len(owners), r.drainers)
	next.epoch = r.epoch + 1
	for partition, drainers := range owners {
		next.setOwners(partition, drainers)
	}
	return next
}

// setOwners sets the owners of a partition. The routing must not be in use yet.
func (r *Routing) setOwners(partition int, owners []uint16) {
	isSplit := len(owners) > 1
	if !isSplit {
		r.owner[partition] = owners[0]
		return
	}
	index := len(r.splitOwners)
	r.owner[partition] = uint16(r.drainers + index) // refers to r.splitOwners[index]
	r.splitOwners = append(r.splitOwners, slices.Clone(owners))
}

// MaxPartitions is the maximum number of partitions: enough to distribute thousands of aggregates
// evenly over many cores, and few enough for a Routing to fit in the cache of a core.
const MaxPartitions = 4096

// policy describes in the status how the number of partitions is chosen.
const policy = "adaptive"

// partitionsFor returns the number of partitions into which a number of keys is divided: about one per key and
// at least one per drainer, a goroutine that counts spans, but not more than MaxPartitions. The result is a
// power of two.
func partitionsFor(drainers, keys int) int {
	wanted := min(max(drainers, keys), MaxPartitions)
	partitions := 1
	for partitions < wanted {
		partitions *= 2
	}
	return partitions
}

// capacityOf returns the number of different keys for which the given number of partitions is enough.
func capacityOf(partitions int) int {
	if partitions >= MaxPartitions {
		return math.MaxInt
	}
	return partitions
}

// sampleEvery is the number of spans per sample of demand. A busy daemon has a hundred thousand
// samples per second, which is enough. A counter for every span would cost an atomic addition per
// span, or have to exist per connection.
const sampleEvery = 32

// demand counts sampled spans by hash, including dropped ones, because the balancer must know about
// the spans that a full ring rejects. The counters correspond to the largest number of partitions,
// so they remain valid when the routing changes.
type demand struct {
	counts [MaxPartitions]atomic.Uint64 // by the low bits of the hash
}

func (d *demand) add(hash uint32) { d.counts[hash&(MaxPartitions-1)].Add(1) }

// loadsSince returns the number of sampled spans of each partition since the last call. lastCounts
// contains the counters as of the last call, and is updated. The number of partitions must be a power
// of two, because the partition of a span is given by the low bits of a hash.
func (d *demand) loadsSince(lastCounts *[MaxPartitions]uint64, partitions int) []uint64 {
	loads := make([]uint64, partitions)
	for i := range d.counts {
		count := d.counts[i].Load()
		partition := i % partitions // the low bits of i, and so of the hash
		loads[partition] += count - lastCounts[i]
		lastCounts[i] = count
	}
	return loads
}

// Route is one publisher's view of the routing. It belongs to one goroutine. Usage for each batch:
//
//	route.Begin()
//	... route.Drainer(hash) for each span ...
//	route.CountLoad(hashes)
//
// A retried batch calls Begin again, but CountLoad only once.
type Route struct {
	balancer   *Balancer
	routing    *Routing // routing of this batch
	batch      uint32   // random number that selects an owner of split partitions
	random     *rand.Rand
	nextSample int // index of the next sampled span in the next batch
}

// NewRoute returns a publisher's view of the routing.
func (b *Balancer) NewRoute() *Route {
	r := &Route{balancer: b, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	r.nextSample = r.randomGap()
	return r
}

// Begin loads the current routing for one batch. Owners of split partitions are selected at
// random, not in turn, because a client that alternates between long and short batches would make
// turns uneven.
func (r *Route) Begin() {
	r.routing = r.balancer.Routing()
	r.batch = r.random.Uint32()
}

// Drainer returns the number of the drainer that counts the spans of a key with the given hash.
func (r *Route) Drainer(hash uint32) int { return r.routing.drainer(hash, r.batch) }

// CountLoad tells the balancer how much load a batch causes. To save time, it counts only a random
// sample of the spans. hashes contains one hash for each span, that of its key. Spans that were dropped
// are included.
func (r *Route) CountLoad(hashes []uint32) {
	for r.nextSample < len(hashes) {
		r.balancer.demand.add(hashes[r.nextSample])
		r.nextSample += 1 + r.randomGap()
	}
	r.nextSample -= len(hashes) // it is in a later batch
}

// randomGap returns the number of spans before the next sample. It is random, so that samples do not
// coincide with patterns in the traffic. On average one of sampleEvery spans is sampled.
func (r *Route) randomGap() int { return r.random.IntN(2*sampleEvery - 1) }
