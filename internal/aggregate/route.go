package aggregate

import "math/rand/v2"

// Route is one publisher's way into the rings: it loads the routing once a
// batch, says for each span which drainer gets it, and notes some spans that
// stand for what the publisher asks of each partition. It belongs to one
// goroutine. For each batch:
//
//	route.Begin()
//	... route.Drainer(hash) for each span ...
//	route.Offered()
//
// A batch that is tried again begins again, and is offered once.
type Route struct {
	balancer *Balancer
	routing  *Routing
	partLane []uint16 // the routing's lanes, by partition
	lanes    []uint16 // by lane, its drainer for this batch
	random   uint64
	wait     int      // spans up to the next one that is noted
	noted    []uint32 // hashes
}

// NewRoute gives a publisher its way.
func (b *Balancer) NewRoute() *Route {
	r := &Route{balancer: b, random: rand.Uint64()}
	r.wait = r.gap()
	return r
}

// Begin takes the current routing for one batch, and for each spread partition
// one of those who share it. The draw is random, not in turn: a tracer whose
// batches alternate between long and short would make turns uneven.
func (r *Route) Begin() {
	routing := r.balancer.routing.Load()
	if routing != r.routing {
		r.adopt(routing)
	}
	for i, sharers := range routing.spread {
		r.lanes[routing.drainers+i] = sharers[r.draw(len(sharers))]
	}
	r.noted = r.noted[:0]
}

func (r *Route) adopt(routing *Routing) {
	r.routing, r.partLane = routing, routing.lanes
	r.lanes = r.lanes[:0]
	for drainer := range routing.drainers {
		r.lanes = append(r.lanes, uint16(drainer))
	}
	r.lanes = append(r.lanes, make([]uint16, len(routing.spread))...)
}

// Drainer is the number of the drainer that gets a span of this hash.
func (r *Route) Drainer(hash uint32) int {
	if r.wait--; r.wait < 0 {
		r.note(hash)
	}
	return int(r.lanes[r.partLane[hash&uint32(len(r.partLane)-1)]])
}

// note takes a span for the sample.
func (r *Route) note(hash uint32) {
	r.noted = append(r.noted, hash)
	r.wait = r.gap()
}

// Offered counts the spans noted of the batch as demand, admitted or dropped.
func (r *Route) Offered() {
	for _, hash := range r.noted {
		r.balancer.demand.add(hash)
	}
	r.noted = r.noted[:0]
}

// gap draws how many spans pass before the next one is noted. It is random, so
// that no rhythm of a tracer meets it; one in sampled is noted on average.
func (r *Route) gap() int { return r.draw(2*sampled - 1) }

// draw is a number below n.
func (r *Route) draw(n int) int {
	r.random = r.random*6364136223846793005 + 1442695040888963407
	return int(r.random >> 32 * uint64(n) >> 32)
}
