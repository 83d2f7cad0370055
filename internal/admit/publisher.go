package admit

import (
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/span"
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
	snapshot snapshot // at hand; after each batch it holds nothing of its bytes
	batch    batch
	shares   []ringShare // by drainer
	wait     waitBudget
	settling *recovery.SettlementTracker
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
	p.process, p.last, p.settling = process, true, recovery.NewSettlementTracker(s.config.Running)
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
		shared: s, origin: origin, settling: recovery.NewSettlementTracker(nil),
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
func (p *Publisher) Settled(through uint64) uint64 { return p.settling.SettledUpTo(through) }

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

// ringShare is what one publisher has in one ring. It keeps a tracer that floods from
// filling a ring that others need too: while there are others, a publisher that has slots
// in a ring may take more only up to what it leaves free. One that floods thus stops at a
// half; n of them leave 1/(n+1) where they grow together, and 1/2^n where each comes when
// the others have stopped. A publisher that is alone leaves an eighth, for whoever comes
// next. Whoever has nothing in the ring may take any room that there is for one batch, so
// none is refused for its size alone; one that is larger than what floods leave free
// waits, or is dropped, as long as they go on.
//
// What was published is kept as marks, each for a stretch of the ring, until the drainer
// has passed the stretch's end. That needs nobody's help but the ring's two cursors.
// While marks are few each is of one batch, and what is held is exact; where there are
// more, a mark is worth a part of the ring, so their number is fixed, and what is held
// seems larger than it is by no more than one of them.
type ringShare struct {
	marks [shareMarks]mark
	first int // index of the oldest
	count int
	held  int // slots, of all marks
}

// mark is slots that one publisher has in a stretch of a ring.
type mark struct {
	end   uint64 // the ring's position behind the last of them
	slots int
}

// shareMarks is how many stretches are told apart. Beyond the first exactMarks, a
// closed mark is worth at least 1/markPart of the ring, so what a ring can hold at
// once needs no more than markPart of them, and the one that is open, and one more
// that is half drained.
const (
	markPart   = 16
	exactMarks = 16
	shareMarks = exactMarks + markPart + 2
)

// shareOfFree is how many slots a publisher may hold for each that it leaves
// free. With 2 a flood could have two thirds, but then three that come one after the
// other leave no more than a twenty-seventh. Alone it is shareOfFreeAlone.
const (
	shareOfFree      = 1
	shareOfFreeAlone = 7
)

// allows says whether n slots more are within the share.
func (s *ringShare) allows(r *ring.Ring[aggregate.Slot], n int, alone bool) bool {
	for drained := r.Drained(); s.count > 0 && s.marks[s.first].end <= drained; s.count-- {
		s.held -= s.marks[s.first].slots
		s.first = (s.first + 1) % shareMarks
	}
	ofFree := shareOfFree
	if alone {
		ofFree = shareOfFreeAlone
	}
	return s.held == 0 || s.held+n <= ofFree*(r.Free()-n)
}

// add notes a run that is about to be published in a ring of that size.
func (s *ringShare) add(end uint64, n, size int) {
	s.held += n
	if s.count > exactMarks {
		last := &s.marks[(s.first+s.count-1)%shareMarks]
		if last.slots < size/markPart || s.count == shareMarks {
			last.end, last.slots = end, last.slots+n
			return
		}
	}
	s.marks[(s.first+s.count)%shareMarks] = mark{end, n}
	s.count++
}

// waitBudget is what a publisher has left of Config.WaitBudget: how long it may wait for
// room before it loses the batches that find none. A drainer that waits for a processor
// behind others is away for some milliseconds, and what a tracer has written meanwhile can
// as well stay in its socket. The budget comes back in ten times as long, so where
// drainers do not keep up at all, a connection waits for a tenth of its time and loses
// what it must.
type waitBudget struct {
	left time.Duration
	last time.Time // when that was
}

const budgetReturn = 10

// has says whether there is some left, of so much at most.
func (w *waitBudget) has(now time.Time, most time.Duration) bool {
	w.left = min(w.left+now.Sub(w.last)/budgetReturn, most)
	w.last = now
	return w.left > 0
}

// spend takes away what was waited since has.
func (w *waitBudget) spend(now time.Time) {
	w.left -= now.Sub(w.last)
	w.last = now
}
