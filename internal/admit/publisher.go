package admit

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/running"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Publisher admits the batches of one origin. One goroutine at a time uses it; the
// counters may be read by any.
type Publisher struct {
	shared   *Publishers
	origin   span.Origin
	process  int32 // whose connection it is, 0 where nobody knows
	last     bool  // its spans are nobody else's to count
	isShared bool  // its origin is one with others', since there was no room for its own
	guard    *aggregate.Guard
	route    *routing.Route
	finder   finder
	snapshot wire.Snapshot // at hand; after each batch it holds nothing of its bytes
	batch    batch
	shares   []ringShare // by drainer
	wait     waitBudget
	settling *running.Settling
	dropped  atomic.Uint64 // spans
}

// NewPublisher makes a publisher for an origin, which is completed by the daemon's own
// host and environment. It may be closed at any time between two batches.
func (s *Publishers) NewPublisher(origin span.Origin) *Publisher {
	return s.newPublisher(origin, keyShare{memory: &s.keyMemory})
}

// NewConnection is NewPublisher for one of the Config.Connections, each of which has its
// share of the memory for keys, and is known to the next daemon. Where an interval has no room for
// its origin, or the process has its share of them, its spans are counted in the common origin.
func (s *Publishers) NewConnection(origin span.Origin, process int32) *Publisher {
	p := s.newPublisher(origin, keyShare{memory: &s.keyMemory, own: s.keyMemory.share})
	p.process, p.last, p.settling = process, true, running.NewSettling(s.config.Running)
	return p
}

// NewLastPublisher is NewPublisher for spans that nobody behind counts where they are not
// admitted: their origin has the common one where there is no room for it.
func (s *Publishers) NewLastPublisher(origin span.Origin) *Publisher {
	p := s.NewPublisher(origin)
	p.last = true
	return p
}

func (s *Publishers) newPublisher(origin span.Origin, share keyShare) *Publisher {
	if origin.Host == "" {
		origin.Host = s.config.DefaultHost
	}
	if origin.Env == "" {
		origin.Env = s.config.DefaultEnv
	}
	origin.Normalize()
	s.open.Add(1)
	aggregator := s.config.Aggregator
	return &Publisher{
		shared: s, origin: origin, settling: running.NewSettling(nil),
		guard: aggregator.NewGuard(), route: aggregator.NewRoute(),
		finder: finder{
			shared: s, lang: origin.Lang, keys: newKeyTable(s.config.MaxKeys, s.config.MaxKeyBytes, share),
		},
		batch:  batch{runs: make([]run, aggregator.Drainers())},
		shares: make([]ringShare, aggregator.Drainers()),
	}
}

// Define makes a number below MaxKeys stand for a key. The error says what is malformed about
// the key.
func (p *Publisher) Define(number uint32, raw []byte) error { return p.finder.define(number, raw) }

// Close ends the publisher. What it published stays published.
func (p *Publisher) Close() {
	p.finder.keys.release()
	p.guard.Close()
	p.settling.Close()
	p.shared.open.Add(-1)
}

// Origin is whose spans it publishes.
func (p *Publisher) Origin() *span.Origin { return &p.origin }

// Received is how many spans it was given. Any goroutine may ask.
func (p *Publisher) Received() uint64 { return p.settling.Received() }

// Token names it to the next daemon, "" where that will know nothing of it.
func (p *Publisher) Token() string { return p.settling.Token() }

// Settled is how many of the spans that it was given have had their outcome, be it that
// they were dropped, where all cycles before that one have had theirs. Any goroutine may
// ask.
func (p *Publisher) Settled(through uint64) uint64 { return p.settling.Through(through) }

// Dropped is how many of them were not admitted. Any goroutine may ask.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Counted is a span of the batch that PublishTogether is about to publish, and the number of
// the cycle that it is counted in. Of one that is ignored the key is no row's. Only commit may ask.
func (p *Publisher) Counted(at int) (cycle uint64, slot *aggregate.Slot) {
	return p.settling.Cycle(), &p.batch.slots[at]
}

// Counting is how many spans of the batch that PublishTogether is about to publish are counted: all
// but those that are ignored. Only commit may ask.
func (p *Publisher) Counting() int { return len(p.batch.slots) - p.batch.ignored }

// Cycle is the number of the cycle that its spans are about to be counted in. Only commit may ask.
func (p *Publisher) Cycle() uint64 { return p.settling.Cycle() }
