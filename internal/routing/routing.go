// Package routing says which drainer counts which part of the key space. It names no
// key, table, cycle or ring.
//
// # What it owns
//
// The key space is cut into partitions by the low bits of a key's hash. A Routing maps
// each partition to its owner, a drainer, or to several, among which each batch chooses
// one at random: then the partition is spread. A publisher reads it through its Route. The
// Balancer counts how much of the traffic each partition is offered (demand), plans an
// assignment that levels the drainers (plan, which is a pure function), and makes it the
// current Routing.
//
// # Why a change needs no coordination
//
// Which drainer counts a key is a matter of load only, never of correctness: every
// drainer has a table in which any key may have a row, and the flush merges rows by key.
// So a change is one store of one pointer. A publisher that still has the old value
// publishes by it, and nothing is wrong; nobody is asked to stop, nothing is handed over,
// and there is nothing to wait for. A key that moves costs one more row in that cycle.
//
// # Threading
//
// A Routing never changes. The current one is written by the Balancer's goroutine alone
// and loaded once a batch by publishers. A Route belongs to one goroutine. Demand
// counters are atomic, and are read by the balancer alone. Stats may be called by anybody.
//
// # Bounds
//
// There are MaxPartitions partitions at most, and as many counters of demand. Publishers
// never wait for the balancer, nor it for them.
package routing

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
)

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

// MaxPartitions bounds the parts that the key space is cut into: enough that the hash levels
// thousands of aggregates over the cores of a large machine, few enough that a routing lies in
// a core's cache.
const MaxPartitions = 4096

// policy is how the number of partitions follows the aggregates, as the status shows it.
const policy = "adaptive"

// partitionsFor returns the number of partitions for a number of live aggregates: one per aggregate, as a power
// of two, so that a mask finds the partition of a key.
func partitionsFor(drainers, aggregates int) int {
	partitions := 1
	for partitions < min(max(drainers, aggregates), MaxPartitions) {
		partitions *= 2
	}
	return partitions
}

// capacityOf returns the largest number of aggregates for which that many partitions are enough.
func capacityOf(partitions int) int {
	if partitions >= MaxPartitions {
		return math.MaxInt
	}
	return partitions
}

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

// Route is one publisher's view of the routing. It belongs to one goroutine. For each
// batch:
//
//	route.Begin()
//	... route.Drainer(hash) for each span ...
//	route.Offered(hashes)
//
// A batch that is tried again begins again, and is offered once.
type Route struct {
	balancer *Balancer
	routing  *Routing // of this batch
	batch    uint32   // a random number, by which spread partitions choose an owner
	random   *rand.Rand
	skip     int // spans up to the next one that is sampled
}

// NewRoute returns a publisher's view.
func (b *Balancer) NewRoute() *Route {
	r := &Route{balancer: b, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	r.skip = r.gap()
	return r
}

// Begin takes the current routing for one batch. The choice among the owners of spread
// partitions is random and not in turn: a tracer whose batches alternate between long and
// short would make turns uneven.
func (r *Route) Begin() {
	r.routing = r.balancer.Routing()
	r.batch = r.random.Uint32()
}

// Drainer is the number of the drainer that gets the spans of this hash.
func (r *Route) Drainer(hash uint32) int { return r.routing.drainer(hash, r.batch) }

// Offered samples the spans of a batch, by their keys' hashes, as demand for their
// partitions. They count whether they are admitted or dropped.
func (r *Route) Offered(hashes []uint32) {
	for ; r.skip < len(hashes); r.skip += 1 + r.gap() {
		r.balancer.demand.add(hashes[r.skip])
	}
	r.skip -= len(hashes)
}

// gap is how many spans pass before the next one is sampled. It is random, so that no
// rhythm of a tracer meets it; one in sampleEvery is taken on average.
func (r *Route) gap() int { return r.random.IntN(2*sampleEvery - 1) }
