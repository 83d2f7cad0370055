package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Publisher admits batches that reach the daemon by another way than a
// connection of ours, for one origin: whoever read them writes them as the body
// of a spans message, with keys by their bytes, and is then a tracer that speaks
// our protocol within the process. So its keys, budgets, cycles and books are
// those of every other.
//
// One goroutine at a time uses it. It never waits for room, whatever --buffer
// says: what finds none is left to the agent, which counts it instead.
type Publisher struct {
	admission
}

// NewPublisher makes a publisher for an origin, completed as that of a tracer
// that does not say everything. Its owner closes it.
func (s *Server) NewPublisher(origin span.Origin) *Publisher {
	p := &Publisher{admission{server: s, origin: s.complete(origin)}}
	p.enter()
	return p
}

// Publish admits the batch of a spans message's body as a whole, or leaves it to
// the agent, counts that, and says why.
func (p *Publisher) Publish(body []byte) (reason Drop, ok bool) {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		panic("BUG: a publisher was given what is no batch: " + err.Error())
	}
	n := uint64(walker.Len())
	if n == 0 {
		return 0, true
	}
	defer p.server.counters.received.Add(n)
	defer func() {
		if !ok {
			p.server.counters.dropped[DropLeftToAgent].Add(n)
		}
	}()
	defer p.route.Offered()
	reason, err = p.admit(walker)
	return reason, err == nil
}

// Close ends the publisher. What it published stays published.
func (p *Publisher) Close() { p.leave() }

// LeaveToAgent counts spans that could not even be offered as a batch.
func (s *Server) LeaveToAgent(spans int) {
	s.counters.dropped[DropLeftToAgent].Add(uint64(spans))
	s.counters.received.Add(uint64(spans))
}
