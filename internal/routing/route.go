package routing

import "math/rand/v2"

// Route is one publisher's way into the rings: it loads the routing once a
// batch, says for each span which drainer gets it, and notes some spans that
// stand for what the publisher asks of each partition. It belongs to one
// goroutine. For each batch:
//
//	route.Begin()
//	... route.Note(hashes), route.Drainer(hash) for each span ...
//	route.Offered()
//
// A batch that is tried again begins again, and is offered once.
type Route struct {
	balancer *Balancer
	routing  *Routing
	drainers []uint16 // by lane, for this batch
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
		r.drainers[routing.drainers+i] = sharers[r.draw(len(sharers))]
	}
	r.noted = r.noted[:0]
}

func (r *Route) adopt(routing *Routing) {
	r.routing = routing
	r.drainers = r.drainers[:0]
	for drainer := range routing.drainers {
		r.drainers = append(r.drainers, uint16(drainer))
	}
	r.drainers = append(r.drainers, make([]uint16, len(routing.spread))...)
}

// Lanes say which lane gets a span of a hash.
func (r *Route) Lanes() Lanes { return r.routing.lanes }

// Drainers are, by lane, those that get the spans of this batch.
func (r *Route) Drainers() []uint16 { return r.drainers }

// Drainer is the number of the drainer that gets a span of this hash.
func (r *Route) Drainer(hash uint32) int { return int(r.drainers[r.Lanes().Of(hash)]) }

// Note takes some of the batch's spans for the sample, of the hashes of the next ones.
func (r *Route) Note(hashes []uint32) {
	for ; r.wait < len(hashes); r.wait += 1 + r.gap() {
		r.noted = append(r.noted, hashes[r.wait])
	}
	r.wait -= len(hashes)
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
