package admit

import (
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// Publisher admits the batches of one origin. Only one goroutine may use it at a time, except for
// the methods that say otherwise.
type Publisher struct {
	shared       *Publishers
	origin       span.Origin
	process      int32 // process ID of the connection's peer; 0 if unknown
	withoutAgent bool  // no agent upstream counts spans that are not admitted
	isShared     bool  // the spans are counted in the common origin, because their own did not fit
	cycleGuard   *aggregate.Guard
	route        *routing.Route
	finder       finder
	snapshot     snapshot // scratch; cleared after each batch, so that it does not retain the message
	batch        batch
	shares       []ringShare // one per drainer
	waitBudget   waitBudget
	settlement   *recovery.SettlementTracker
	dropped      atomic.Uint64 // number of dropped spans
}

// NewPublisher returns a publisher for the spans of one origin, the process that sends them. An empty
// host or environment is replaced by DefaultHost or DefaultEnv. The publisher must not be closed while
// it publishes.
func (s *Publishers) NewPublisher(origin span.Origin) *Publisher {
	p := s.newPublisher(origin, keyShare{memory: &s.keyMemory})
	p.finder.keys.measures = s.config.Measures
	return p
}

// NewConnection is like NewLastPublisher, for a connection of the native protocol. process is the client's process ID,
// or 0. A part of the memory for keys is reserved for the connection. The recovery file, if there is one, contains the
// number of its received spans, for the next daemon.
func (s *Publishers) NewConnection(origin span.Origin, process int32) *Publisher {
	p := s.newPublisher(origin, keyShare{memory: &s.keyMemory, reserved: s.keyMemory.share})
	p.process = process
	p.withoutAgent = true // spans of the native protocol cannot be forwarded to an agent
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
	p := &Publisher{
		shared: s, origin: origin, settlement: recovery.NewSettlementTracker(nil),
		cycleGuard: aggregator.NewGuard(), route: aggregator.NewRoute(),
		finder: finder{
			shared: s, keys: newKeyTable(s.config.MaxKeys, s.config.MaxKeyBytes, share),
		},
		batch: batch{
			perDrainer: make([]drainerBatch, aggregator.Drainers()), objectives: make(slo.Counts, s.config.Objectives.Len()),
		},
		shares: make([]ringShare, aggregator.Drainers()),
	}
	p.finder.origin = &p.origin
	return p
}

// Define assigns a number below MaxKeys to a key. The error says how the key is malformed.
func (p *Publisher) Define(number uint32, raw []byte) error { return p.finder.define(number, raw) }

// Close releases the memory of the publisher. Published spans stay published.
func (p *Publisher) Close() {
	p.finder.keys.release()
	p.cycleGuard.Close()
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

// SettleBefore records that all spans in cycles, or export intervals, before the given one are settled: delivered, or
// finally dropped. It returns how many of the received spans are settled. It is safe for concurrent use.
func (p *Publisher) SettleBefore(cycle uint64) (settled uint64) {
	return p.settlement.SettleBefore(cycle)
}

// Dropped returns the number of spans that were not admitted. It is safe for concurrent use.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }

// Counted returns the record of span i of the current batch, and the number of the export interval that counts the
// span. The record of an ignored span has no valid key. Counted may only be called by the callback commit of
// PublishTogether.
func (p *Publisher) Counted(i int) (cycle uint64, slot *aggregate.Slot) {
	return p.settlement.Cycle(), &p.batch.slots[i]
}

// CountedSpans returns how many spans of the current batch are counted: all except for ignored ones. It may only be
// called by the callback commit of PublishTogether.
func (p *Publisher) CountedSpans() int { return p.batch.spans - p.batch.ignored }

// CountedValues returns how many values of the current batch are counted: all except for those of ignored spans. It may
// only be called by the callback commit of PublishTogether.
func (p *Publisher) CountedValues() int { return p.batch.values - p.batch.ignoredValues }

// Cycle returns the number of the export interval in which the current batch is counted. It may only be
// called by the callback commit of PublishTogether.
func (p *Publisher) Cycle() uint64 { return p.settlement.Cycle() }

// ringShare counts the slots of one ring that one publisher uses, and limits their number, so that a
// publisher that sends too much leaves free slots for others. A used slot becomes free when the consumer of
// the ring has read it.
type ringShare struct {
	ranges     [maxRanges]claimedRange // a circular buffer
	firstRange int                     // index of the oldest range
	rangeCount int
	usedSlots  int // number of used slots: those of all ranges
}

// claimedRange is a part of a ring that contains slots of one publisher.
type claimedRange struct {
	end   uint64 // ring position after the last of the slots
	slots int    // number of slots of the publisher in the range
}

// maxRanges is the maximum number of ranges. The first exactRanges contain one claim each. Each further
// range contains several claims, together at least 1/rangePart of the ring, so at most rangePart of them fit
// in a ring. The 2 are the range that is still extended and the one that is partly drained.
const (
	rangePart   = 16
	exactRanges = 16
	maxRanges   = exactRanges + rangePart + 2
)

// usedPerFree is how many slots a publisher may use per slot that it leaves free, and
// usedPerFreeAlone is the same for the only publisher. So one publisher stops at half of the ring, the next
// at half of the rest, and so on. With a usedPerFree of 2, three publishers would leave only 1/27.
const (
	usedPerFree      = 1
	usedPerFreeAlone = 7
)

// allows reports whether the publisher may claim n more slots of a ring with the given number of free slots. It may then
// use at most as many slots as it leaves free. The only publisher may use seven times as many. A publisher that uses no
// slots may claim any number. removeDrained must be called first.
func (s *ringShare) allows(freeSlots, n int, isAlone bool) bool {
	if s.usedSlots == 0 {
		return true
	}
	used := s.usedSlots + n
	free := freeSlots - n
	if isAlone {
		return used <= usedPerFreeAlone*free
	}
	return used <= usedPerFree*free
}

// removeDrained removes the ranges whose slots the consumer of the ring has freed. drained is the ring position after
// the last freed slot.
func (s *ringShare) removeDrained(drained uint64) {
	for s.rangeCount > 0 {
		oldest := s.rangeAt(0)
		if oldest.end > drained {
			return
		}
		s.usedSlots -= oldest.slots
		s.firstRange = (s.firstRange + 1) % maxRanges // in the circular buffer
		s.rangeCount--
	}
}

// addRange records that the publisher uses n more slots, which end at the ring position end. ringSize is the number of
// slots of the ring. If there are many ranges already, addRange extends the last one. All slots of a range count as
// used until the last of them is freed.
func (s *ringShare) addRange(end uint64, n, ringSize int) {
	s.usedSlots += n
	if s.mustExtendLast(ringSize) {
		last := s.rangeAt(s.rangeCount - 1)
		last.end = end
		last.slots += n
		return
	}
	next := s.rangeAt(s.rangeCount)
	*next = claimedRange{end: end, slots: n}
	s.rangeCount++
}

// mustExtendLast reports whether newly claimed slots are added to the last range, to limit the number of ranges.
func (s *ringShare) mustExtendLast(ringSize int) bool {
	if s.rangeCount <= exactRanges {
		return false
	}
	last := s.rangeAt(s.rangeCount - 1)
	isShort := last.slots < ringSize/rangePart
	isFull := s.rangeCount == maxRanges // unlikely, see maxRanges
	return isShort || isFull
}

// rangeAt returns the range at the given index, counted from the oldest one, in the circular buffer.
func (s *ringShare) rangeAt(i int) *claimedRange { return &s.ranges[(s.firstRange+i)%maxRanges] }

// waitBudget is the time that a publisher may still wait for ring slots before it drops batches.
// Its maximum is Config.WaitBudget. Waiting bridges the few milliseconds in which a drainer waits
// for a CPU: the spans that the tracer sends in that time can stay in the socket. The budget
// refills at a tenth of real time. So if the drainers can't keep up at all, a connection waits for
// a tenth of its time and drops the rest.
type waitBudget struct {
	left time.Duration
	last time.Time // time when left was updated
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

// spendSinceRefill subtracts the time since the last call of refill, in which the publisher has waited.
func (w *waitBudget) spendSinceRefill(now time.Time) {
	w.left -= now.Sub(w.last)
	w.last = now
}
