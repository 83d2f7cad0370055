package routing

import "math/rand/v2"

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
