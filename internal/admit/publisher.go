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

// Publisher admits the batches of one origin. Only one goroutine may use it at a time, except for
// the methods that say otherwise.
type Publisher struct {
	shared       *Publishers
	origin       span.Origin
	process      int32 // process ID of the connection's peer; 0 if unknown
	withoutAgent bool  // no agent upstream counts spans that are not admitted
	isShared     bool  // the spans are counted in the common origin, because their own did not fit
	guard        *aggregate.Guard
	route        *routing.Route
	finder       finder
	snapshot     snapshot // scratch; cleared after each batch, so that it does not retain the message
	batch        batch
	shares       []ringShare // one per drainer
	wait         waitBudget
	settlement   *recovery.SettlementTracker
	dropped      atomic.Uint64 // number of dropped spans
}

// NewPublisher returns a publisher for the spans of one origin, the process that sends them. An empty
// host or environment is replaced by DefaultHost or DefaultEnv. The publisher must not be closed while
// it publishes.
func (s *Publishers) NewPublisher(origin span.Origin) *Publisher {
	return s.newPublisher(origin, keyShare{memory: &s.keyMemory})
}

// NewConnection is like NewPublisher, for a connection of the native protocol. The publisher has
// one of the Config.Connections shares of the memory for keys, and the recovery file tells the next
// daemon what it has received. If its origin does not fit in an interval, or the process has used
// up its share of origins, its spans are counted in the common origin.
func (s *Publishers) NewConnection(origin span.Origin, process int32) *Publisher {
	p := s.newPublisher(origin, keyShare{memory: &s.keyMemory, own: s.keyMemory.share})
	p.process = process
	p.withoutAgent = true
	p.settlement = recovery.NewSettlementTracker(s.config.Recovery)
	return p
}

// NewLastPublisher is like NewPublisher, for spans that no agent counts if the daemon does not. If
// there are too many origins in an interval, they are counted in an origin that several processes
// share.
func (s *Publishers) NewLastPublisher(origin span.Origin) *Publisher {
	p := s.NewPublisher(origin)
	p.withoutAgent = true
	return p
}

// newPublisher returns a publisher whose keys are charged to share.
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
		shared: s, origin: origin, settlement: recovery.NewSettlementTracker(nil),
		guard: aggregator.NewGuard(), route: aggregator.NewRoute(),
		finder: finder{
			shared: s, lang: origin.Lang, keys: newKeyTable(s.config.MaxKeys, s.config.MaxKeyBytes, share),
		},
		batch:  batch{perDrainer: make([]drainerBatch, aggregator.Drainers())},
		shares: make([]ringShare, aggregator.Drainers()),
	}
}

// Define assigns a number below MaxKeys to a key. The error says how the key is malformed.
func (p *Publisher) Define(number uint32, raw []byte) error { return p.finder.define(number, raw) }

// Close releases the memory of the publisher. Published spans stay published.
func (p *Publisher) Close() {
	p.finder.keys.release()
	p.guard.Close()
	p.settlement.Close()
	p.shared.open.Add(-1)
}

// Origin returns the publisher's origin, with the defaults applied.
func (p *Publisher) Origin() *span.Origin { return &p.origin }

// Received returns the number of spans that the publisher was given. It is safe for concurrent use.
func (p *Publisher) Received() uint64 { return p.settlement.Received() }

// Token returns an identifier by which the next daemon finds the publisher in the recovery file. It is
// empty if the file has no record of the publisher.
func (p *Publisher) Token() string { return p.settlement.Token() }

// Settled returns how many of the received spans are settled: delivered, or finally dropped. firstUnsettled is
// the first cycle, or export interval, with spans that are not settled. Settled is safe for concurrent use.
func (p *Publisher) Settled(firstUnsettled uint64) uint64 {
	return p.settlement.SettleBefore(firstUnsettled)
}

// Dropped returns the number of spans that were not admitted. It is safe for concurrent use.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Counted returns the record of span i of a batch, and the number of the cycle, one export interval, that
// counts the span. The record of an ignored span has no valid key. Counted may only be called by the
// commit function that is passed to PublishTogether.
func (p *Publisher) Counted(i int) (cycle uint64, slot *aggregate.Slot) {
	return p.settlement.Cycle(), &p.batch.slots[i]
}

// Counting returns how many spans of the current batch are counted: all except for ignored ones. Only
// the function commit of PublishTogether may call it.
func (p *Publisher) Counting() int { return len(p.batch.slots) - p.batch.ignored }

// Cycle returns the number of the export interval in which the current batch is counted. It may only be
// called by the callback commit of PublishTogether.
func (p *Publisher) Cycle() uint64 { return p.settlement.Cycle() }

// ringShare counts the slots of one ring that one publisher uses, and limits their number, so that a
// publisher that sends too much leaves free slots for others. A used slot becomes free when the consumer of
// the ring has read it. The marks say at which positions that happens.
type ringShare struct {
	marks     [shareMarks]mark // a circular buffer
	firstMark int              // index of the oldest mark
	markCount int
	held      int // number of used slots: those of all marks
}

// mark is a stretch of a ring that contains slots of one publisher.
type mark struct {
	end   uint64 // ring position after the last of the slots
	slots int    // number of slots of the publisher in the stretch
}

// shareMarks is the maximum number of marks. Beyond exactMarks, a closed mark covers at least
// 1/markPart of the ring, so at most markPart of them fit in a ring. The 2 are the mark that is
// still open and the one that is partly drained.
const (
	markPart   = 16
	exactMarks = 16
	shareMarks = exactMarks + markPart + 2
)

// shareOfFree is how many slots a publisher may hold per slot that it leaves free, and
// shareOfFreeAlone is the same for the only publisher. So one publisher stops at half of the ring, the next
// at half of the rest, and so on. With a shareOfFree of 2, three publishers would leave only 1/27.
const (
	shareOfFree      = 1
	shareOfFreeAlone = 7
)

// allows reports whether the publisher may claim n more slots of a ring. Together with these, it may hold at
// most as many slots as remain free, or seven times as many if isAlone is true. A publisher that holds no
// slots may claim any number.
func (s *ringShare) allows(r *ring.Ring[aggregate.Slot], n int, isAlone bool) bool {
	s.removeDrained(r.Drained())
	heldPerFree := shareOfFree
	if isAlone {
		heldPerFree = shareOfFreeAlone
	}
	if s.held == 0 {
		return true
	}
	remaining := r.Free() - n
	return s.held+n <= heldPerFree*remaining
}

// removeDrained subtracts the slots that the consumer of the ring has freed from those that the publisher
// uses. The consumer has freed all slots before the position drained.
func (s *ringShare) removeDrained(drained uint64) {
	for s.markCount > 0 && s.marks[s.firstMark].end <= drained {
		s.held -= s.marks[s.firstMark].slots
		s.firstMark = (s.firstMark + 1) % shareMarks
		s.markCount--
	}
}

// addMark records that the publisher uses n more slots of a ring with ringSize slots, until the consumer
// has passed the position end. If there are many marks, it extends the last one instead of adding another.
// Then some slots are counted as used longer than they are.
func (s *ringShare) addMark(end uint64, n, ringSize int) {
	s.held += n
	if s.markCount > exactMarks {
		last := s.markAt(s.markCount - 1)
		mayGrow := last.slots < ringSize/markPart
		mustGrow := s.markCount == shareMarks
		if mayGrow || mustGrow {
			last.end = end
			last.slots += n
			return
		}
	}
	*s.markAt(s.markCount) = mark{end, n}
	s.markCount++
}

// markAt returns the mark at the given index, counted from the oldest one, in the circular buffer.
func (s *ringShare) markAt(i int) *mark { return &s.marks[(s.firstMark+i)%shareMarks] }

// waitBudget is the time that a publisher may still wait for ring slots before it drops batches.
// Its maximum is Config.WaitBudget. Waiting bridges the few milliseconds in which a drainer waits
// for a CPU: the spans that the tracer sends in that time can stay in the socket. The budget
// refills at a tenth of real time. So if the drainers can't keep up at all, a connection waits for
// a tenth of its time and drops the rest.
type waitBudget struct {
	left time.Duration
	last time.Time // when left was updated
}

// budgetRefill is how much longer it takes to refill the budget than to spend it.
const budgetRefill = 10

// refill adds a tenth of the time since the last call to the time that the publisher may wait, but not
// beyond limit. It returns false if no time is left.
func (w *waitBudget) refill(now time.Time, limit time.Duration) bool {
	w.left = min(w.left+now.Sub(w.last)/budgetRefill, limit)
	w.last = now
	return w.left > 0
}

// spend subtracts the time since refill was called: the publisher has waited.
func (w *waitBudget) spend(now time.Time) {
	w.left -= now.Sub(w.last)
	w.last = now
}
