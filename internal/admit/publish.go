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

// Publish publishes all spans of an encoded message, or drops them all. While a ring, a queue of the
// aggregator, is full, it retries as long as the configuration allows. Dropped spans are counted by
// reason, and are not an error. Publish returns an error if the message is malformed.
func (p *Publisher) Publish(body []byte) error {
	walker, err := wire.WalkSpans(body)
	if err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	spans := uint64(walker.Len())
	if spans == 0 {
		walker.Next(&p.snapshot.Snapshot) // finds bytes after the end
		return walker.Err()               //nolint:wrapcheck // the decoder's error is complete
	}
	entry := p.shared.totals.begin(spans, DropBug)
	defer entry.end()
	maxBatch := p.shared.config.MaxBatch
	defer p.finish(maxBatch)
	reason := DropBatchTooLarge
	if walker.Len() <= maxBatch {
		reason, err = p.tryRepeatedly(source{walker: walker}, &entry)
	}
	if reason != notDropped {
		p.settlement.Receive(spans) // not earlier: try enters the cycle that Settled assigns the spans to
		entry.reason = reason
		p.dropped.Store(p.dropped.Load() + spans)
	}
	return err
}

// tryRepeatedly publishes a complete batch, or drops it and returns the reason. While a ring is full, it
// retries as long as the publisher may wait.
func (p *Publisher) tryRepeatedly(from source, entry *entry) (DropReason, error) {
	for {
		reason, err := p.try(from, entry)
		final, retry := p.waitForRoom(reason)
		if !retry {
			return final, err
		}
	}
}

// roomPause is the delay between two attempts to publish a batch while a ring is full.
const roomPause = 200 * time.Microsecond

// waitForRoom decides whether a batch is published again after it was dropped for the given reason. If
// a retry can succeed and the publisher may wait longer, it pauses for roomPause and returns true.
// Otherwise it returns false and the reason to report.
func (p *Publisher) waitForRoom(reason DropReason) (final DropReason, retry bool) {
	if !reason.isTransient() {
		return reason, false
	}
	if !p.mayWait() {
		// Only the drainers free ring slots. Without this call, a burst that only drops would keep
		// the CPU from them for up to ten milliseconds.
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
	p.wait.spend(time.Now()) // the time since mayWait
	return reason, true
}

// mayWait reports whether the publisher may wait for free ring slots: always if Config.Block is set, otherwise
// until it has used up its budget for waiting.
func (p *Publisher) mayWait() bool {
	if p.shared.config.Block {
		return true
	}
	return p.wait.refill(time.Now(), p.shared.config.WaitBudget)
}

// try admits the complete batch within one cycle, or drops it and returns the reason.
func (p *Publisher) try(from source, entry *entry) (DropReason, error) {
	defer p.leaveCycle()
	reason, err := p.resolveAndClaim(from)
	if reason == notDropped {
		p.copySlots()
		p.countHeldSlots()
		p.publish(entry)
		p.settlement.Receive(entry.spans) // before leaveCycle, so that the cycle is not sealed yet
	}
	return reason, err
}

// Refuse counts spans as DropRefused that arrived on a connection after the message that ended it.
func (s *Publishers) Refuse(spans uint64) {
	entry := s.totals.begin(spans, DropRefused)
	entry.end()
}

// resolveAndClaim finds the row in which each span of a batch is counted, and claims ring slots for the
// spans. It returns notDropped, or the reason why the batch is dropped, and an error if the message is
// malformed. The caller must call leaveCycle afterwards in all cases.
func (p *Publisher) resolveAndClaim(from source) (DropReason, error) {
	if p.shared.isStopped() {
		return DropShutdown, nil
	}
	if p.shared.unwanted.Load() {
		return DropNotWanted, nil
	}
	cycle := p.guard.Enter()
	if cycle == nil {
		return DropShutdown, nil
	}
	if !p.joinCycle(cycle) {
		return DropLeftToAgent, nil
	}
	err := p.resolveOnce(cycle, &from)
	if err != nil {
		return DropMalformed, err
	}
	return p.claimAll(), nil
}

// resolveOnce finds the row in which each span of the batch is counted. It does nothing if an earlier attempt
// to publish the batch did this in the same cycle: a retry must not count as another use of the keys.
func (p *Publisher) resolveOnce(cycle *aggregate.Cycle, from *source) error {
	if p.batch.isResolvedIn(cycle.Number()) {
		return nil
	}
	defer p.finder.countMisses()
	return p.resolve(cycle, from)
}

// claimAll claims slots for the spans of the batch in the ring of each drainer. It returns notDropped, or
// the reason why the batch is dropped.
func (p *Publisher) claimAll() DropReason {
	for drainer := range p.batch.perDrainer {
		reason := p.claim(drainer)
		if reason != notDropped {
			return reason
		}
	}
	return notDropped
}

// joinCycle prepares the publisher for a cycle, a set of spans that are exported together. In a new export
// interval, it first gets an ID for the publisher's origin, the process that sends the spans. It returns
// false if there are too many origins, so that the agent has to count the spans.
func (p *Publisher) joinCycle(cycle *aggregate.Cycle) bool {
	p.settlement.EnterCycle(cycle.Number())
	intervalPlusOne := cycle.Interval() + 1 // 0 stands for no interval
	isSameInterval := p.finder.interval == intervalPlusOne
	if isSameInterval {
		return true
	}
	origin, ok := p.admitOrigin(cycle)
	if ok {
		p.finder.begin(intervalPlusOne, origin)
	}
	return ok
}

// admitOrigin returns the ID of the publisher's origin, the process that sends the spans. If there are too
// many origins, it returns false, and the agent has to count the spans. If there is no agent, several
// processes share an ID: admitOrigin returns this ID and true, and sets p.isShared.
func (p *Publisher) admitOrigin(cycle *aggregate.Cycle) (id registry.OriginID, ok bool) {
	if p.withoutAgent {
		id, p.isShared = cycle.AdmitOriginOrShared(p.origin, p.process)
		return id, true
	}
	return cycle.AdmitOrigin(p.origin)
}

// resolve fills the batch with the slot of each snapshot. It is the hot path.
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
			b.countCollapsed(key.collapsed)
		}
		if s.Flags&span.SharedOrigin != 0 {
			b.shared++
		}
		if s.Flags&span.Renamed != 0 {
			b.renamed++
		}
		drainer := p.route.Drainer(key.hash)
		b.hashes[i-b.ignored], b.drainers[i] = key.hash, uint16(drainer)
		b.perDrainer[drainer].spans++
		slot := &b.slots[i]
		slot.Duration, slot.End, slot.Weight, slot.Flags = s.Duration, s.End, s.Weight, s.Flags
		slot.Key, slot.Place = key.id, window.Place(s.End)
	}
	if err := from.walker.Err(); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	p.route.CountLoad(b.hashes[:len(b.slots)-b.ignored])
	b.isResolved, b.cycle = true, cycle.Number()
	return nil
}

// claimTries is the maximum number of attempts to claim ring slots while other publishers claim at
// the same time.
const claimTries = 8

// claim reserves ring slots for the spans of the batch that go to one drainer, a goroutine that counts the
// spans of one ring. It returns notDropped, or the reason why the whole batch is dropped. In
// either case, leaveCycle must be called afterwards.
func (p *Publisher) claim(drainer int) DropReason {
	part := &p.batch.perDrainer[drainer]
	aggregator := p.shared.config.Aggregator
	if part.spans == 0 {
		return notDropped
	}
	if part.spans > aggregator.RingSlots() {
		return DropBatchTooLarge
	}
	spanRing := aggregator.Ring(drainer)
	isAlone := p.shared.isAlone()
	if !p.shares[drainer].allows(spanRing, part.spans, isAlone) {
		if isAlone {
			return DropRingFull // the free slots are kept for the next publisher
		}
		return DropOverShare
	}
	claim, reason := claimSlots(spanRing, part.spans)
	part.claim = claim
	return reason
}

// claimSlots claims n slots of a ring. If other publishers claim slots at the same time, it makes up to
// claimTries attempts. It returns the claim and notDropped, or the reason why it has claimed nothing.
func claimSlots(
	spanRing *ring.Ring[aggregate.Slot], n int,
) (claim ring.Claim[aggregate.Slot], reason DropReason) {
	claim, result := spanRing.Claim(n)
	for tries := 1; result == ring.Contended && tries < claimTries; tries++ {
		runtime.Gosched()
		claim, result = spanRing.Claim(n)
	}
	switch result {
	case ring.Full:
		return claim, DropRingFull
	case ring.Contended:
		return claim, DropRingContended
	}
	return claim, notDropped
}

// copySlots copies the spans of the batch to the claimed ring slots.
func (p *Publisher) copySlots() {
	b := &p.batch
	for i, drainer := range b.drainers {
		if drainer == noDrainer {
			continue
		}
		part := &b.perDrainer[drainer]
		*part.claim.Slot(part.filled) = b.slots[i]
		part.filled++
	}
}

// countHeldSlots adds the claimed slots of each ring to those that the publisher uses, so that its share
// of the ring is limited.
func (p *Publisher) countHeldSlots() {
	b := &p.batch
	ringSlots := p.shared.config.Aggregator.RingSlots()
	for drainer := range b.perDrainer {
		claim := &b.perDrainer[drainer].claim
		if claim.Len() > 0 {
			p.shares[drainer].addMark(claim.End(), claim.Len(), ringSlots)
		}
	}
}

// publish passes the filled ring slots to the drainers. It counts the spans in entry and in the totals.
func (p *Publisher) publish(entry *entry) {
	b := &p.batch
	for i := range b.perDrainer {
		claim := &b.perDrainer[i].claim
		slots := claim.Len()
		if slots > 0 {
			claim.Publish()
			entry.published += uint64(slots)
		}
	}
	entry.ignored += uint64(b.ignored)
	totals := &p.shared.totals
	if b.hasCollapsed {
		totals.addCollapsed(&b.collapsed)
	}
	if p.isShared {
		b.shared = len(b.slots) - b.ignored
	}
	if b.shared > 0 {
		totals.common.Add(uint64(b.shared))
	}
	if b.renamed > 0 {
		totals.renamed.Add(uint64(b.renamed))
	}
}

// leaveCycle ends the use of the current cycle, so that it can be exported, and drops the reference to the
// message. It abandons claimed ring slots that were not published, because their ring would be blocked
// otherwise.
func (p *Publisher) leaveCycle() {
	for i := range p.batch.perDrainer {
		p.batch.perDrainer[i].claim.Abandon()
	}
	p.snapshot = snapshot{} // it refers to the message
	p.guard.Exit()
}

// finish resets the scratch after a batch. Retries of a batch need only one call.
func (p *Publisher) finish(maxBatch int) {
	p.batch.isResolved = false
	p.batch.trim(maxBatch)
}

// source yields the snapshots of a batch, from a message of the native protocol or from a request
// body that a receiver has counted.
type source struct {
	walker wire.SpansWalker
	batch  *span.Batch // spans of a request body; nil for a message
}

// len returns the number of snapshots of the batch.
func (src *source) len() int {
	if src.batch != nil {
		return len(src.batch.Snapshots)
	}
	return src.walker.Len()
}

// next reads the snapshot with the index i into s. It returns false after the last one, or if the
// message is malformed. The first call must have the index 0, each other call the next index.
func (src *source) next(s *snapshot, i int) bool {
	if src.batch == nil {
		return src.walker.Next(&s.Snapshot)
	}
	if i == len(src.batch.Snapshots) {
		return false
	}
	counted := &src.batch.Snapshots[i]
	s.Snapshot = wire.Snapshot{
		Key: src.batch.FingerprintOf(counted), Duration: counted.Duration, End: counted.End,
		Flags: counted.Flags, Weight: counted.Weight,
	}
	s.labeller, s.span = src.batch.Labeller, counted.Span
	return true
}

// BatchPart is the batch of one publisher in a call of PublishTogether.
type BatchPart struct {
	Publisher *Publisher
	Batch     *span.Batch
}

// PublishTogether admits the batches of several publishers: all of them or none, because a request
// can be left to the agent, or refused, only as a whole. Each publisher may occur once.
// PublishTogether does not wait while a ring is full.
//
// It calls commit when all batches have claimed their ring slots, before the first span is
// published. After commit the caller must not let the agent count the spans, even if
// PublishTogether panics: spans that a panic leaves unpublished count as DropBug.
//
// If PublishTogether fails before commit, the spans count as DropLeftToAgent. The spans of last
// publishers, which no agent counts, are dropped for the returned reason; if that IsPassing, they
// are not counted as received, because the caller refuses the request and its sender retries.
func (s *Publishers) PublishTogether(commit func(), parts ...BatchPart) (reason DropReason, ok bool) {
	spans := uint64(0)
	for i := range parts {
		spans += uint64(len(parts[i].Batch.Snapshots))
	}
	if spans == 0 {
		commit()
		return 0, true
	}
	entry := s.totals.begin(spans, DropLeftToAgent)
	defer entry.end()
	noAgent := parts[0].Publisher.withoutAgent
	if noAgent {
		entry.reason = DropBug
	}
	defer s.leaveAll(parts)
	aggregator := s.config.Aggregator
	if spans > uint64(aggregator.Drainers()*aggregator.RingSlots()) {
		reason = DropBatchTooLarge
	}
	for i := 0; i < len(parts) && reason == notDropped; i++ {
		reason, _ = parts[i].Publisher.resolveAndClaim(source{batch: parts[i].Batch})
	}
	if reason != notDropped {
		if noAgent {
			entry.refuse(reason)
		}
		return reason, false
	}
	for i := range parts {
		parts[i].Publisher.copySlots()
		parts[i].Publisher.countHeldSlots()
	}
	entry.reason = DropBug
	commit()
	for i := range parts {
		parts[i].Publisher.publish(&entry)
	}
	return 0, true
}

// leaveAll calls leaveCycle and finish for the publisher of each part.
func (s *Publishers) leaveAll(parts []BatchPart) {
	for i := range parts {
		parts[i].Publisher.leaveCycle()
		parts[i].Publisher.finish(s.config.MaxBatch)
	}
}
