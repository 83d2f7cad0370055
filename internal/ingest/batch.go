package ingest

import (
	"errors"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// batch is the scratch of one publisher for the batch that it is admitting.
type batch struct {
	slots     []aggregate.Slot // in chunks; room for the largest batch so far
	used      int              // of slots
	isRoomy   bool             // there is room for all that spans to come may need
	few       [aggregate.MostSlots + aggregate.EndSlots]aggregate.Slot
	runs      []run // by drainer
	collapsed [registry.Fields]uint64
	collapses bool
	lost      registry.Collapsed // by so many spans in a row, not yet in collapsed
	lostTimes uint64
}

// run is the part of a batch that goes to one drainer: its slots, in the tracer's order,
// lie in chunks.
type run struct {
	end         int // behind the last slot; a chunk's end, or 0, where it takes no more
	chunks      int
	notes       int // slots that are no span
	claim       ring.Claim[aggregate.Slot]
	to, wrapped []aggregate.Slot // the claim's, before and behind the ring's end
}

// chunk is how many slots are set aside for a run at a time. The first of them is the
// end of the chunk before, the others are the run's. So nobody need know how many slots
// each run will have, all of them share one room, and they are copied into the ring in
// pieces: one by one, that took a tenth of the daemon's time.
const (
	chunk     = 32
	chunkRoom = chunk - 1
)

// len is how many slots the run has.
func (r *run) len() int {
	if r.chunks == 0 {
		return 0
	}
	return (r.chunks-1)*chunkRoom + (r.end-1)%chunk
}

// unpublished is how many spans have room claimed for them that was not published.
func (r *run) unpublished() int { return max(0, r.claim.Len()-r.notes) }

func newBatch(drainers int) batch { return batch{runs: make([]run, drainers)} }

// reset empties the batch and makes room for n spans, each of which takes one slot.
func (b *batch) reset(n int) {
	b.used, b.isRoomy = 0, false
	b.room(n)
	for i := range b.runs {
		r := &b.runs[i]
		r.end, r.chunks, r.notes = 0, 0, 0
	}
	if b.collapses {
		b.collapsed, b.collapses, b.lostTimes = [registry.Fields]uint64{}, false, 0
	}
}

// slotsFor is the room that so many slots may take: that of full chunks, and of one more
// of each run.
func slotsFor(n, drainers int) int { return (n/chunkRoom + drainers) * chunk }

// roomFor makes room for so many spans, whatever they need.
func (b *batch) roomFor(spans int) {
	if !b.isRoomy { // once a batch, or each run that needs a chunk of its own would move all
		b.isRoomy = true
		b.room(aggregate.EndSlots + aggregate.MostSlots*spans)
	}
}

// room makes room for so many slots more.
func (b *batch) room(n int) {
	if need := b.used + slotsFor(n, len(b.runs)); len(b.slots) < need {
		b.slots = append(make([]aggregate.Slot, 0, need), b.slots[:b.used]...)[:need]
	}
}

// open gives a run its next chunk.
func (b *batch) open(r *run) {
	b.slots[b.used] = aggregate.Slot(r.end)
	r.end = b.used + 1
	r.chunks++
	b.used += chunk
}

// add adds a slot to a run.
func (b *batch) add(r *run, s aggregate.Slot) {
	if r.end%chunk == 0 {
		b.open(r)
	}
	b.slots[r.end] = s
	r.end++
}

// copy copies a run's slots to where it has claimed room for them, the last chunk first.
func (b *batch) copy(r *run) {
	at, end := r.len(), r.end
	for range r.chunks {
		start := (end - 1) &^ (chunk - 1)
		slots := b.slots[start+1 : end]
		at -= len(slots)
		if wrapped := at - len(r.to); wrapped >= 0 {
			copy(r.wrapped[wrapped:], slots)
		} else {
			n := copy(r.to[at:], slots)
			copy(r.wrapped, slots[n:])
		}
		end = int(b.slots[start])
	}
}

// trim lets go of the room that only a batch of more than so many spans needs.
func (b *batch) trim(most int) {
	if len(b.slots) > mostRoom(most, len(b.runs)) {
		b.slots = nil
	}
}

// mostRoom is what the slots of a batch of so many spans may take, whatever they need.
// It is more than what slotsFor says by what was open when the first turned up that
// needs several.
func mostRoom(spans, drainers int) int {
	return slotsFor(aggregate.MostSlots*spans+2*aggregate.EndSlots, 2*drainers)
}

// errDropped says that a batch must be dropped under the reason of the same try.
var errDropped = errors.New("batch dropped")

// blockedPause is how long a connection waits between two tries while its
// batch finds no room.
const blockedPause = 200 * time.Microsecond

// spans admits the batch of one spans message, or drops and counts it. An error
// closes the connection.
func (c *conn) spans(body []byte) error {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		return &fault{FaultBadMessage, err}
	}
	if walker.Len() == 0 {
		if walker.Next(&c.snapshot); walker.Err() != nil {
			return &fault{FaultBadMessage, walker.Err()}
		}
		return nil
	}
	c.gather(walker)
	err = c.countGathered()
	c.wasTried = false
	clear(c.gathered[:c.together]) // or they would keep the message's buffer
	return err
}

// count has a batch in the books, whatever comes of it. Received is counted last, so
// that at any moment no part of the books exceeds the whole for longer than what is
// admitted at a time. It has one defer and one return: with more, Go sets each up in
// memory first, and that was a fiftieth of the daemon's time.
func (c *conn) count(walker wire.SpansWalker) error {
	n, outcome := uint64(walker.Len()), dropped(DropBug) // what a panic below leaves
	defer func() {
		if !outcome.admitted {
			c.server.counters.dropped[outcome.reason].Add(n)
			c.dropped.Store(c.dropped.Load() + n)
		}
		c.server.counters.received.Add(n)
	}()
	c.received.Store(c.received.Load() + n)
	err := c.offer(walker, &outcome)
	c.route.Offered() // once, however often it was tried
	return err
}

// outcome is what became of a batch.
type outcome struct {
	admitted bool
	reason   Drop // else
}

func dropped(reason Drop) outcome { return outcome{reason: reason} }

// offer tries to admit a batch until that is done or hopeless.
func (c *conn) offer(walker wire.SpansWalker, o *outcome) error {
	if walker.Len() > c.server.config.MaxBatch {
		*o = dropped(DropBatchTooLarge)
		return nil
	}
	for {
		reason, err := c.admit(walker)
		if err == nil {
			o.admitted = true
			return nil
		}
		if err != errDropped { //nolint:errorlint // our own sentinel, never wrapped
			*o = dropped(reason)
			return err
		}
		if !reason.passes() {
			*o = dropped(reason)
			return nil
		}
		if !c.server.config.Block && !c.leeway.has(time.Now(), c.server.config.Leeway) {
			// Room is made by the drainers, who wait for a processor behind those
			// that only drop; a flood would keep it for ten milliseconds.
			runtime.Gosched()
			*o = dropped(reason)
			return nil
		}
		if !c.server.pause(blockedPause) {
			*o = dropped(DropShutdown)
			return nil
		}
		c.leeway.spend(time.Now())
	}
}

// admit resolves and publishes whole batches within one cycle. With errDropped
// nothing of them was published, and the reason says why.
func (a *admission) admit(batches ...wire.SpansWalker) (Drop, error) {
	defer a.abandon()
	reason, err := a.reserve(batches...)
	if err == nil {
		a.fill()
		a.publish()
	}
	return reason, err
}

// reserve enters the cycle, resolves whole batches and claims room for them. What
// it returns, abandon must follow; after nil, fill and publish may come before.
func (a *admission) reserve(batches ...wire.SpansWalker) (Drop, error) {
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
	err := a.resolve(cycle, batches)
	a.snapshot.Key = nil // or it would keep the message's buffer
	a.glance.Settle()
	a.countMisses()
	a.wasTried = true
	if err != nil {
		return DropMalformed, &fault{FaultBadMessage, err}
	}
	for drainer := range a.batch.runs {
		n := a.batch.runs[drainer].len()
		if n == 0 {
			continue
		}
		if reason, ok := a.claim(drainer, n, len(batches) == 1); !ok {
			return reason, errDropped
		}
	}
	return 0, nil
}

// collapse counts a span that lost labels. In a flood, one has lost what the one before
// has.
func (b *batch) collapse(fields registry.Collapsed) {
	if fields != b.lost || !b.collapses {
		b.sumCollapsed()
		b.lost, b.collapses = fields, true
	}
	b.lostTimes++
}

func (b *batch) sumCollapsed() {
	for f := range registry.Fields {
		if b.lost.Has(registry.Field(f)) {
			b.collapsed[f] += b.lostTimes
		}
	}
	b.lostTimes = 0
}

// fill copies the slots in where reserve has claimed room for them. Nothing can go wrong
// after it.
func (a *admission) fill() {
	ringSlots := a.server.config.Aggregator.RingSlots()
	b := &a.batch
	for drainer := range b.runs {
		if claim := &b.runs[drainer].claim; claim.Len() > 0 {
			b.copy(&b.runs[drainer])
			a.shares[drainer].add(claim.End(), claim.Len(), ringSlots)
		}
	}
}

// publish hands what fill has copied to the drainers.
func (a *admission) publish() {
	b := &a.batch
	for i := range b.runs {
		if claim := &b.runs[i].claim; claim.Len() > 0 {
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

// claim takes room for n slots in one ring, of one batch or of several, unless that were
// more than this publisher's share of it.
func (a *admission) claim(drainer, n int, isOne bool) (Drop, bool) {
	aggregator := a.server.config.Aggregator
	if n > aggregator.RingSlots() {
		return DropBatchTooLarge, false
	}
	r := aggregator.Ring(drainer)
	if alone := a.server.isAlone(); !a.shares[drainer].allows(r, n, isOne, alone) {
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
	run := &a.batch.runs[drainer]
	run.claim = claim
	run.to, run.wrapped = claim.Segments()
	return 0, true
}

// abandon leaves the cycle. What was claimed and not published, because another
// ring had no room or after a panic, is skipped: it must not stop its drainer.
func (a *admission) abandon() {
	for i := range a.batch.runs {
		a.batch.runs[i].claim.Abandon()
	}
	a.reader.Exit()
}
