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
	p.enter(false)
	return p
}

// Publish admits the batch of a spans message's body as a whole, or leaves it to
// the agent, counts that, and says why.
func (p *Publisher) Publish(body []byte) (reason Drop, ok bool) {
	return p.server.PublishTogether(Part{p, body})
}

// Part is a batch of one publisher among those that are admitted together.
type Part struct {
	Publisher *Publisher
	Spans     []byte // the body of a spans message
}

// PublishTogether admits the batches of several publishers, each at most once
// among them, all or none: what a tracer sent in one request can be left to the
// agent only whole. Otherwise it is Publish.
func (s *Server) PublishTogether(parts ...Part) (reason Drop, ok bool) {
	n := uint64(0)
	for i := range parts {
		walker := parts[i].walk()
		n += uint64(walker.Len())
	}
	if n == 0 {
		return 0, true
	}
	defer s.counters.received.Add(n)
	defer func() {
		if !ok {
			s.counters.dropped[DropLeftToAgent].Add(n)
		}
	}()
	if aggregator := s.config.Aggregator; n > uint64(aggregator.Drainers()*aggregator.RingSlots()) {
		return DropBatchTooLarge, false
	}
	return s.admitTogether(parts)
}

func (p *Part) walk() wire.SpansWalker {
	walker, err := wire.WalkSpans(p.Spans)
	if err != nil {
		panic("BUG: a publisher was given what is no batch: " + err.Error())
	}
	return walker
}

// admitTogether reserves room for each part before the first is published.
func (s *Server) admitTogether(parts []Part) (Drop, bool) {
	begun := 0
	defer func() {
		for _, part := range parts[:begun] {
			part.Publisher.abandon()
			part.Publisher.route.Offered()
			part.Publisher.batch.trim(s.config.MaxBatch)
		}
	}()
	for i := range parts {
		begun++
		if reason, err := parts[i].Publisher.reserve(parts[i].walk()); err != nil {
			return reason, false
		}
	}
	for _, part := range parts {
		part.Publisher.publish()
	}
	return 0, true
}

// Close ends the publisher. What it published stays published.
func (p *Publisher) Close() { p.leave() }

// LeaveToAgent counts spans that could not even be offered as a batch.
func (s *Server) LeaveToAgent(spans int) {
	s.counters.dropped[DropLeftToAgent].Add(uint64(spans))
	s.counters.received.Add(uint64(spans))
}
