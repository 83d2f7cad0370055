package admit

import (
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Publish admits the batch of a spans message's body whole, or drops it whole, and keeps
// the books of it. Where the rings have no room it waits, as Config says. The error says
// what is malformed about the body.
func (p *Publisher) Publish(body []byte) error {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		return err //nolint:wrapcheck // the message's own words
	}
	spans := uint64(walker.Len())
	if spans == 0 {
		walker.Next(&p.snapshot.Snapshot)
		return walker.Err() //nolint:wrapcheck // the message's own words
	}
	entry := p.shared.books.begin(spans, DropBug)
	defer entry.end()
	defer p.finish(p.shared.config.MaxBatch)
	reason := DropBatchTooLarge
	for again := walker.Len() <= p.shared.config.MaxBatch; again; {
		reason, err = p.try(source{walker: walker}, &entry)
		reason, again = p.waitForRoom(reason)
	}
	if reason != admitted {
		p.settling.Receive(spans) // now that it has joined their cycle, see Settled
		entry.reason = reason
		p.dropped.Store(p.dropped.Load() + spans)
	}
	return err
}

// roomPause is how long a publisher waits between two tries while its batch finds no
// room.
const roomPause = 200 * time.Microsecond

// waitForRoom waits a little where a try found no room and the publisher may wait, and
// says whether to try again. Otherwise it says what became of the batch.
func (p *Publisher) waitForRoom(reason DropReason) (last DropReason, again bool) {
	if !reason.passes() {
		return reason, false
	}
	if !p.shared.config.Block && !p.wait.has(time.Now(), p.shared.config.WaitBudget) {
		// Room is made by the drainers, who wait for a processor behind those
		// that only drop; a flood would keep it for ten milliseconds.
		runtime.Gosched()
		return reason, false
	}
	pause := time.NewTimer(roomPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-p.shared.stopped:
		return DropShutdown, false
	}
	p.wait.spend(time.Now())
	return reason, true
}

// try admits a batch within one cycle, or nothing of it.
func (p *Publisher) try(from source, entry *entry) (DropReason, error) {
	defer p.leave()
	reason, err := p.reserve(from)
	if reason == admitted {
		p.fill()
		p.publish(entry)
		p.settling.Receive(entry.spans) // before the cycle can be sealed
	}
	return reason, err
}

// Refuse has spans in the books that a connection handed over behind what ended it.
func (s *Publishers) Refuse(spans uint64) {
	entry := s.books.begin(spans, DropRefused)
	entry.end()
}

// reserve enters the cycle, resolves the keys of a whole batch and claims room for it. Whatever it
// returns, leave must follow; fill and publish may come before only if it is admitted. If the batch
// is tried again in the same cycle, its keys are not resolved again, so that a retry does not look
// like a recurrence.
func (p *Publisher) reserve(from source) (DropReason, error) {
	switch {
	case p.shared.isStopped():
		return DropShutdown, nil
	case p.shared.unwanted.Load():
		return DropNotWanted, nil
	}
	cycle := p.guard.Enter()
	if cycle == nil {
		return DropShutdown, nil
	}
	if !p.join(cycle) {
		return DropLeftToAgent, nil
	}
	if !p.batch.isResolvedIn(cycle.Number()) { // by the try before this one
		err := p.resolve(cycle, &from)
		p.finder.countMisses()
		if err != nil {
			return DropMalformed, err
		}
	}
	for drainer := range p.batch.runs {
		if reason := p.claim(drainer); reason != admitted {
			return reason, nil
		}
	}
	return admitted, nil
}

// join makes the publisher ready for the cycle that it is in: at the first batch of an
// interval, its origin is admitted and its key table swept. It reports false where the
// interval has no room for the origin, and the agent can count the spans with its name.
func (p *Publisher) join(cycle *aggregate.Cycle) bool {
	p.settling.EnterCycle(cycle.Number())
	interval := cycle.Interval() + 1
	if p.finder.interval == interval {
		return true
	}
	origin, ok := p.joinOrigin(cycle)
	if ok {
		p.finder.begin(interval, origin)
	}
	return ok
}

func (p *Publisher) joinOrigin(cycle *aggregate.Cycle) (id registry.OriginID, ok bool) {
	if !p.last {
		return cycle.AdmitOrigin(p.origin)
	}
	id, p.isShared = cycle.JoinOrigin(p.origin, p.process)
	return id, true
}

// resolve makes the slot of each snapshot. It is the hot path.
func (p *Publisher) resolve(cycle *aggregate.Cycle, from *source) error {
	b, s, window := &p.batch, &p.snapshot, cycle.Window()
	b.reset(from.len())
	p.route.Begin()
	for i := 0; from.next(s, i); i++ {
		key, err := p.finder.find(cycle, s)
		if err != nil {
			return err
		}
		if key.id == ignoredKey {
			b.ignore(i)
			continue
		}
		if key.collapsed != 0 {
			b.collapse(key.collapsed)
		}
		if s.Flags&span.SharedOrigin != 0 {
			b.shared++
		}
		drainer := p.route.Drainer(key.hash)
		b.hashes[i-b.ignored], b.drainers[i] = key.hash, uint16(drainer)
		b.runs[drainer].slots++
		slot := &b.slots[i]
		slot.Duration, slot.End, slot.Weight, slot.Flags = s.Duration, s.End, s.Weight, s.Flags
		slot.Key, slot.Place = key.id, window.Place(s.End)
	}
	if err := from.walker.Err(); err != nil {
		return err //nolint:wrapcheck // the message's own words
	}
	p.route.Offered(b.hashes[:len(b.slots)-b.ignored])
	b.isResolved, b.cycle = true, cycle.Number()
	return nil
}

// claimTries bounds how often a claim that only lost races is made again.
const claimTries = 8

// claim takes room for a run of the batch in its ring, unless that were more than this
// publisher's share of it. Where it finds none, leave skips what was claimed on others.
func (p *Publisher) claim(drainer int) DropReason {
	run, aggregator := &p.batch.runs[drainer], p.shared.config.Aggregator
	n := run.slots
	switch {
	case n == 0:
		return admitted
	case n > aggregator.RingSlots():
		return DropBatchTooLarge
	}
	r := aggregator.Ring(drainer)
	if alone := p.shared.isAlone(); !p.shares[drainer].allows(r, n, alone) {
		if alone {
			return DropRingFull // but for the room that the next one finds
		}
		return DropOverShare
	}
	claim, result := r.Claim(n)
	for tries := 1; result == ring.Contended && tries < claimTries; tries++ {
		runtime.Gosched()
		claim, result = r.Claim(n)
	}
	switch result {
	case ring.Full:
		return DropRingFull
	case ring.Contended:
		return DropRingContended
	}
	run.claim = claim
	return admitted
}

// fill copies the slots to where reserve has claimed room for them.
func (p *Publisher) fill() {
	b := &p.batch
	for i, drainer := range b.drainers {
		if drainer == nowhere {
			continue
		}
		r := &b.runs[drainer]
		*r.claim.Slot(r.filled) = b.slots[i]
		r.filled++
	}
	for drainer := range b.runs {
		if claim := &b.runs[drainer].claim; claim.Len() > 0 {
			p.shares[drainer].add(claim.End(), claim.Len(), p.shared.config.Aggregator.RingSlots())
		}
	}
}

// publish hands what fill has copied to the drainers.
func (p *Publisher) publish(entry *entry) {
	b := &p.batch
	for i := range b.runs {
		if claim := &b.runs[i].claim; claim.Len() > 0 {
			slots := claim.Len()
			claim.Publish()
			entry.published += uint64(slots)
		}
	}
	entry.ignored += uint64(b.ignored)
	if b.hasCollapsed {
		p.shared.books.collapse(&b.collapsed)
	}
	if p.isShared {
		b.shared = len(b.slots) - b.ignored
	}
	if b.shared > 0 {
		p.shared.books.common.Add(uint64(b.shared))
	}
}

// leave leaves the cycle. What was claimed and not published, because another ring had
// no room or after a panic, is skipped: it must not stop its drainer.
func (p *Publisher) leave() {
	for i := range p.batch.runs {
		p.batch.runs[i].claim.Abandon()
	}
	p.snapshot = snapshot{} // or it would keep the message's buffer
	p.guard.Exit()
}

// finish ends a batch, however often it was tried.
func (p *Publisher) finish(maxBatch int) {
	p.batch.isResolved = false
	p.batch.trim(maxBatch)
}

// source is where the snapshots of a batch come from: a message of the native protocol, or a body that a receiver
// has counted. The other one is empty.
type source struct {
	walker wire.SpansWalker
	batch  *span.Batch // nil for a message
}

func (f *source) len() int {
	if f.batch != nil {
		return len(f.batch.Snapshots)
	}
	return f.walker.Len()
}

// next reads the snapshot with that number, and reports false after the last one. The walker's Err tells the end
// from a fault.
func (f *source) next(s *snapshot, number int) bool {
	if f.batch == nil {
		return f.walker.Next(&s.Snapshot)
	}
	if number == len(f.batch.Snapshots) {
		return false
	}
	one := &f.batch.Snapshots[number]
	s.Snapshot = wire.Snapshot{
		Key: f.batch.FingerprintOf(one), Duration: one.Duration, End: one.End, Flags: one.Flags, Weight: one.Weight,
	}
	s.labeller, s.span = f.batch.Labeller, one.Span
	return true
}

// BatchPart is the batch of one publisher among those that are admitted together.
type BatchPart struct {
	Publisher *Publisher
	Batch     *span.Batch
}

// PublishTogether admits the batches of several publishers, each at most once among
// them, all or none: what a tracer sent in one request can be left to the agent, or
// refused, only whole. It never waits for room.
//
// It calls commit once everything that could go wrong has gone well, and before the
// first span is published. Whoever was told so must not have the spans counted by
// anybody else, even if a panic comes out of here: what that leaves unpublished is
// dropped as a defect of ours.
//
// Before commit, the spans are left to the agent. Those of last publishers are nobody's: they
// are dropped under the reason that is returned, unless that IsPassing, since its caller then
// refuses them and has them once more.
func (s *Publishers) PublishTogether(commit func(), parts ...BatchPart) (reason DropReason, ok bool) {
	spans := uint64(0)
	for i := range parts {
		spans += uint64(len(parts[i].Batch.Snapshots))
	}
	if spans == 0 {
		commit()
		return 0, true
	}
	entry := s.books.begin(spans, DropLeftToAgent)
	defer entry.end()
	isLast := parts[0].Publisher.last
	if isLast {
		entry.reason = DropBug
	}
	defer s.leaveAll(parts)
	aggregator := s.config.Aggregator
	if spans > uint64(aggregator.Drainers()*aggregator.RingSlots()) {
		reason = DropBatchTooLarge
	}
	for i := 0; i < len(parts) && reason == admitted; i++ {
		reason, _ = parts[i].Publisher.reserve(source{batch: parts[i].Batch})
	}
	if reason != admitted {
		if isLast {
			entry.refuse(reason)
		}
		return reason, false
	}
	for i := range parts {
		parts[i].Publisher.fill()
	}
	entry.reason = DropBug
	commit()
	for i := range parts {
		parts[i].Publisher.publish(&entry)
	}
	return 0, true
}

func (s *Publishers) leaveAll(parts []BatchPart) {
	for i := range parts {
		parts[i].Publisher.leave()
		parts[i].Publisher.finish(s.config.MaxBatch)
	}
}
