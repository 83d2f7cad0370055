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
	return p.server.PublishTogether(func() {}, Part{p, body})
}

// Part is a batch of one publisher among those that are admitted together.
type Part struct {
	Publisher *Publisher
	Spans     []byte // the body of a spans message
}

// PublishTogether admits the batches of several publishers, each at most once
// among them, all or none: what a tracer sent in one request can be left to the
// agent only whole. Otherwise it is Publish.
//
// It calls commit once everything that could go wrong has gone well, and before the
// first span is published. Whoever was told so must not have the spans counted by
// anybody else, even if a panic comes out of here: what that leaves unpublished is
// dropped as a defect of ours.
func (s *Server) PublishTogether(commit func(), parts ...Part) (reason Drop, ok bool) {
	n := uint64(0)
	for i := range parts {
		walker := parts[i].walk()
		n += uint64(walker.Len())
	}
	if n == 0 {
		commit()
		return 0, true
	}
	defer s.counters.received.Add(n)
	committed := false
	defer func() {
		switch skipped := settle(parts, s.config.MaxBatch); {
		case !committed:
			s.counters.dropped[DropLeftToAgent].Add(n)
		case skipped > 0:
			s.counters.dropped[DropBug].Add(skipped)
		}
	}()
	if aggregator := s.config.Aggregator; n > uint64(aggregator.Drainers()*aggregator.RingSlots()) {
		return DropBatchTooLarge, false
	}
	for i := range parts {
		if reason, err := parts[i].Publisher.reserve(parts[i].walk()); err != nil {
			return reason, false
		}
	}
	for i := range parts {
		parts[i].Publisher.fill()
	}
	committed = true
	commit()
	for i := range parts {
		parts[i].Publisher.publish()
	}
	return 0, true
}

func (p *Part) walk() wire.SpansWalker {
	walker, err := wire.WalkSpans(p.Spans)
	if err != nil {
		panic("BUG: a publisher was given what is no batch: " + err.Error())
	}
	return walker
}

// settle gives back what reserve took, of the parts that it came to, and says how many
// spans had room and were not published.
func settle(parts []Part, maxBatch int) (skipped uint64) {
	for i := range parts {
		p := parts[i].Publisher
		for i := range p.batch.runs {
			skipped += uint64(p.batch.runs[i].unpublished())
		}
		p.abandon()
		p.wasTried = false
		p.route.Offered()
		p.batch.trim(maxBatch)
	}
	return skipped
}

// Close ends the publisher. What it published stays published.
func (p *Publisher) Close() { p.leave() }

// LeaveToAgent counts spans that could not even be offered as a batch.
func (s *Server) LeaveToAgent(spans int) {
	s.counters.dropped[DropLeftToAgent].Add(uint64(spans))
	s.counters.received.Add(uint64(spans))
}
