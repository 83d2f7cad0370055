package ingest

import (
	"errors"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// batch is the scratch of one publisher for the batch that it is admitting.
type batch struct {
	slots     []aggregate.Slot // resolved, in the tracer's order; room for the largest batch so far
	drainers  []uint16         // by slot, whose ring it goes to
	len       int              // of both
	counts    []int            // by drainer
	claims    []ring.Claim[aggregate.Slot]
	filled    []int // by drainer, slots of its claim that are written
	collapsed [aggregate.Fields]uint64
	collapses bool
	lost      aggregate.Collapsed // by so many spans in a row, not yet in collapsed
	lostTimes uint64
}

func newBatch(drainers int) batch {
	return batch{
		counts: make([]int, drainers), filled: make([]int, drainers),
		claims: make([]ring.Claim[aggregate.Slot], drainers),
	}
}

// reset empties the batch and makes room for n slots.
func (b *batch) reset(n int) {
	if len(b.slots) < n {
		b.slots, b.drainers = make([]aggregate.Slot, n), make([]uint16, n)
	}
	b.len = 0
	clear(b.counts)
	clear(b.filled)
	if b.collapses {
		b.collapsed, b.collapses, b.lostTimes = [aggregate.Fields]uint64{}, false, 0
	}
}

// trim lets go of the room that only a batch of more than so many slots needs.
func (b *batch) trim(most int) {
	if len(b.slots) > most {
		b.slots, b.drainers = nil, nil
	}
}

// errDropped says that a batch must be dropped under the reason of the same try.
var errDropped = errors.New("batch dropped")

// blockedPause is how long a connection waits between two tries while its
// batch finds no room and may not be dropped.
const blockedPause = 200 * time.Microsecond

// spans admits the batch of one spans message, or drops and counts it. An error
// closes the connection. Received is counted last, so that at any moment no
// part of the books exceeds the whole for longer than one batch.
func (c *conn) spans(body []byte) error {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		return &fault{FaultBadMessage, err}
	}
	n := walker.Len()
	if n == 0 {
		if walker.Next(&c.snapshot); walker.Err() != nil {
			return &fault{FaultBadMessage, walker.Err()}
		}
		return nil
	}
	defer c.server.counters.received.Add(uint64(n))
	c.received.Store(c.received.Load() + uint64(n))
	reason := DropBug // what a panic below leaves
	settled := false
	defer func() {
		if !settled {
			c.server.counters.dropped[reason].Add(uint64(n))
			c.dropped.Store(c.dropped.Load() + uint64(n))
		}
	}()
	if n > c.server.config.MaxBatch {
		reason = DropBatchTooLarge
		return nil
	}
	defer c.route.Offered() // once, however often it is tried
	for {
		reason, err = c.admit(walker)
		if err == nil {
			settled = true
			return nil
		}
		if err != errDropped { //nolint:errorlint // our own sentinel, never wrapped
			return err
		}
		if !reason.passes() {
			return nil
		}
		if !c.server.config.Block {
			// Room is made by the drainers, who wait for a processor behind those
			// that only drop; a flood would keep it for ten milliseconds.
			runtime.Gosched()
			return nil
		}
		if !c.server.pause(blockedPause) {
			reason = DropShutdown
			return nil
		}
		reason = DropBug
	}
}

// admit resolves and publishes a whole batch within one cycle. With errDropped
// nothing of it was published, and the reason says why.
func (a *admission) admit(walker wire.SpansWalker) (Drop, error) {
	defer a.abandon()
	reason, err := a.reserve(walker)
	if err == nil {
		a.fill()
		a.publish()
	}
	return reason, err
}

// reserve enters the cycle, resolves a whole batch and claims room for it. What
// it returns, abandon must follow; after nil, fill and publish may come before.
func (a *admission) reserve(walker wire.SpansWalker) (Drop, error) {
	switch {
	case a.server.isCut():
		return DropShutdown, errDropped
	case !a.server.wanted():
		return DropNotWanted, errDropped
	}
	cycle := a.reader.Enter()
	if cycle == nil {
		return DropShutdown, errDropped
	}
	if !a.enterCycle(cycle) {
		return DropTooManyOrigins, errDropped
	}
	err := a.resolve(cycle, walker)
	a.glance.Settle()
	a.countMisses()
	if err != nil {
		return DropMalformed, &fault{FaultBadMessage, err}
	}
	for drainer, n := range a.batch.counts {
		if n == 0 {
			continue
		}
		if reason, ok := a.claim(drainer, n); !ok {
			return reason, errDropped
		}
	}
	return 0, nil
}

// resolve finds every snapshot's aggregate and ring.
func (a *admission) resolve(cycle *aggregate.Cycle, walker wire.SpansWalker) error {
	b := &a.batch
	b.reset(walker.Len())
	slots, drainers := b.slots, b.drainers[:len(b.slots)]
	route := a.route
	route.Begin()
	s, number := &a.snapshot, uint16(cycle.Number())
	for walker.Next(s) {
		to, err := a.find(cycle, s)
		if err != nil {
			return err
		}
		drainer := route.Drainer(to.hash)
		b.counts[drainer]++
		// Field by field: a literal is built on the stack and copied from there by
		// wider loads than the stores just before, which waits for those to retire.
		slot := &slots[b.len]
		slot.Duration, slot.End, slot.Weight = s.Duration, s.End, s.Weight
		slot.Key, slot.Cycle, slot.Flags = to.id, number, s.Flags
		drainers[b.len] = uint16(drainer)
		b.len++
		if to.collapsed != 0 {
			b.collapse(to.collapsed)
		}
	}
	return walker.Err()
}

// collapse counts a span that lost labels. In a flood, one has lost what the one before
// has.
func (b *batch) collapse(fields aggregate.Collapsed) {
	if fields != b.lost || !b.collapses {
		b.sumCollapsed()
		b.lost, b.collapses = fields, true
	}
	b.lostTimes++
}

func (b *batch) sumCollapsed() {
	for f := range aggregate.Fields {
		if b.lost.Has(aggregate.Field(f)) {
			b.collapsed[f] += b.lostTimes
		}
	}
	b.lostTimes = 0
}

// fill copies the slots in where reserve has claimed room for them. Nothing can go wrong
// after it.
func (a *admission) fill() {
	b := &a.batch
	for i, drainer := range b.drainers[:b.len] {
		*b.claims[drainer].Slot(b.filled[drainer]) = b.slots[i]
		b.filled[drainer]++
	}
	ringSlots := a.server.config.Aggregator.RingSlots()
	for drainer := range b.claims {
		if claim := &b.claims[drainer]; claim.Len() > 0 {
			a.shares[drainer].add(claim.End(), claim.Len(), ringSlots)
		}
	}
}

// publish hands what fill has copied to the drainers.
func (a *admission) publish() {
	b := &a.batch
	for drainer := range b.claims {
		if claim := &b.claims[drainer]; claim.Len() > 0 {
			claim.Publish()
		}
	}
	if b.collapses {
		b.sumCollapsed()
		for f, n := range b.collapsed {
			a.server.counters.collapsed[f].Add(n)
		}
	}
}

// claimTries bounds how often a claim that only lost races is made again.
const claimTries = 8

// claim takes room for n slots in one ring, unless that were more than this
// publisher's share of it.
func (a *admission) claim(drainer, n int) (Drop, bool) {
	r := a.server.config.Aggregator.Ring(drainer)
	if alone := a.server.isAlone(); !a.shares[drainer].allows(r, n, alone) {
		if alone {
			return DropRingFull, false // but for the room that the next one finds
		}
		return DropOverShare, false
	}
	claim, result := r.Claim(n)
	for tries := 1; result == ring.Contended && tries < claimTries; tries++ {
		runtime.Gosched()
		claim, result = r.Claim(n)
	}
	switch result {
	case ring.Full:
		return DropRingFull, false
	case ring.Contended:
		return DropRingContended, false
	}
	a.batch.claims[drainer] = claim
	return 0, true
}

// abandon leaves the cycle. What was claimed and not published, because another
// ring had no room or after a panic, is skipped: it must not stop its drainer.
func (a *admission) abandon() {
	for i := range a.batch.claims {
		a.batch.claims[i].Settle()
	}
	a.reader.Exit()
}
