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
		walker.Next(&p.snapshot.Snapshot) // finds no span, but checks that no bytes follow the empty list
		return walker.Err()               //nolint:wrapcheck // the decoder's error is complete
	}
	entry := p.shared.totals.begin(spans, DropBug) // DropBug is for a panic; recordDrop sets any other reason
	defer entry.end()
	defer p.endBatch(p.shared.config.MaxBatch)
	reason, err := p.publishSpans(walker, &entry)
	if reason != notDropped {
		p.recordDrop(&entry, reason)
	}
	return err
}

// publishSpans publishes all spans of a message, or drops them and returns the reason.
func (p *Publisher) publishSpans(walker wire.SpansWalker, entry *entry) (DropReason, error) {
	if walker.Len() > p.shared.config.MaxBatch {
		return DropBatchTooLarge, nil
	}
	return p.tryRepeatedly(source{walker: walker}, entry)
}

// recordDrop records that all spans of a batch were received, but dropped for the given reason. It is called
// after the last attempt to publish them, because attempts choose the cycle, or export interval, to which
// received spans belong.
func (p *Publisher) recordDrop(entry *entry, reason DropReason) {
	p.settlement.Receive(entry.spans.received)
	entry.reason = reason
	p.dropped.Store(p.dropped.Load() + entry.spans.received)
}

// tryRepeatedly publishes a complete batch, or drops it and returns the reason. While the queue to a drainer,
// a goroutine that counts spans, is full, it retries until the publisher has waited too long.
func (p *Publisher) tryRepeatedly(snapshots source, entry *entry) (DropReason, error) {
	for {
		reason, err := p.tryOnce(snapshots, entry)
		if !reason.isTransient() {
			return reason, err
		}
		if !p.mayWait() {
			// Let the drainers run, because only they free ring slots. Otherwise a publisher that drops many
			// batches in a row could occupy a CPU until the Go scheduler preempts it, after ten milliseconds.
			runtime.Gosched()
			return reason, err
		}
		isStopped := p.pause()
		if isStopped {
			return DropShutdown, err
		}
	}
}

// retryPause is the delay between two attempts to publish a batch while a ring is full.
const retryPause = 200 * time.Microsecond

// pause waits for retryPause, and subtracts the time since mayWait was called from the time that the publisher may still
// wait. It returns true at once if the daemon stops.
func (p *Publisher) pause() (isStopped bool) {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.shared.stopped:
		return true
	}
	p.waitBudget.spendSinceRefill(time.Now())
	return false
}

// mayWait reports whether the publisher may wait for free ring slots: always if Config.Block is set, otherwise
// until it has used up its budget for waiting.
func (p *Publisher) mayWait() bool {
	if p.shared.config.Block {
		return true
	}
	return p.waitBudget.refill(time.Now(), p.shared.config.WaitBudget)
}

// tryOnce admits the complete batch within one cycle, or drops it and returns the reason.
func (p *Publisher) tryOnce(snapshots source, entry *entry) (DropReason, error) {
	defer p.leaveCycle()
	reason, err := p.resolveAndClaim(snapshots)
	if reason == notDropped {
		p.copySlots()
		p.countHeldSlots()
		p.publish(entry)
		p.settlement.Receive(entry.spans.received) // before leaveCycle, so that the cycle is not sealed yet
	}
	return reason, err
}

// Refuse counts spans as DropRefused that arrived on a connection after the message that ended it.
func (s *Publishers) Refuse(spans uint64) {
	entry := s.totals.begin(spans, DropRefused)
	entry.end()
}

// resolveAndClaim finds out where each span of a batch is counted, and reserves space for the spans in the
// queues to the goroutines that count them. It returns notDropped, or the reason why the batch is dropped, and
// an error if the message is malformed. The caller must call leaveCycle afterwards, whatever the result.
func (p *Publisher) resolveAndClaim(snapshots source) (DropReason, error) {
	if p.shared.isStopped() {
		return DropShutdown, nil
	}
	if p.shared.unwanted.Load() {
		return DropNotWanted, nil
	}
	cycle := p.cycleGuard.Enter() // the current export interval, which cannot end before leaveCycle
	if cycle == nil {
		return DropShutdown, nil
	}
	hasOrigin := p.joinCycle(cycle)
	if !hasOrigin { // too many processes send spans in this interval, so the agent has to count these
		return DropLeftToAgent, nil
	}
	err := p.resolveOnce(cycle, &snapshots)
	if err != nil {
		return DropMalformed, err
	}
	return p.claimAll(), nil
}

// resolveOnce finds out where each span of the batch is counted. It does nothing if an earlier attempt to publish
// the batch did this in the same cycle, or export interval, because the registry would count a retry as another use
// of the keys.
func (p *Publisher) resolveOnce(cycle *aggregate.Cycle, snapshots *source) error {
	if p.batch.isResolvedIn(cycle.Number()) {
		return nil
	}
	defer p.finder.countDecodedKeys() // also if a key is malformed
	return p.resolve(cycle, snapshots)
}

// claimAll reserves space for the spans of the batch in the ring, or queue, of each drainer, a goroutine that counts
// spans. It returns notDropped, or the reason why the batch is dropped.
func (p *Publisher) claimAll() DropReason {
	for drainer := range p.batch.perDrainer {
		reason := p.claim(drainer)
		if reason != notDropped {
			return reason
		}
	}
	return notDropped
}

// joinCycle prepares the publisher for a cycle, a set of spans that are exported together. An export interval consists
// of one or more cycles. In a new interval, joinCycle gets an ID for the publisher's origin, the process that sends the
// spans. It returns false if there are too many origins, so that the agent has to count the spans.
func (p *Publisher) joinCycle(cycle *aggregate.Cycle) bool {
	p.settlement.EnterCycle(cycle.Number())
	interval := cycle.Interval()
	isNewInterval := !p.finder.isInInterval(interval)
	if !isNewInterval {
		return true
	}
	origin, ok := p.admitOrigin(cycle)
	if ok {
		p.finder.beginInterval(interval, origin)
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

// resolve fills the batch with the slot of each snapshot, and then with those of their values. It is the hot path.
func (p *Publisher) resolve(cycle *aggregate.Cycle, snapshots *source) error {
	b, s, window := &p.batch, &p.snapshot, cycle.Window()
	b.reset(snapshots.len(), len(snapshots.values()))
	p.route.Begin()
	remainingValues := snapshots.values() // values of the spans from i on
	for i := 0; snapshots.next(s); i++ {
		key, err := p.finder.find(cycle, s)
		if err != nil {
			return err
		}
		if key.id == ignoredKey {
			b.ignore(i)
			b.ignored++
		} else {
			p.fillSlot(i, key, s)
			b.slots[i].Place = window.Place(s.End)
		}
		for len(remainingValues) > 0 && int(remainingValues[0].Snapshot) == i {
			slotIndex := len(b.slots) - len(remainingValues) // the last slots are those of the values
			p.resolveValue(cycle, slotIndex, &remainingValues[0])
			remainingValues = remainingValues[1:]
		}
	}
	if err := snapshots.walker.Err(); err != nil {
		return err //nolint:wrapcheck // the decoder's error is complete
	}
	p.route.CountLoad(b.hashes)
	b.isResolved, b.cycle = true, cycle.Number()
	return nil
}

// fillSlot fills the slot at index i, except for its place, with the span s. key is the result of finding its key.
func (p *Publisher) fillSlot(i int, key *resolved, s *snapshot) {
	b := &p.batch
	if key.collapsed != 0 {
		b.countCollapsed(key.collapsed)
	}
	if s.Flags&span.SharedOrigin != 0 {
		b.shared++
	}
	if s.Flags&span.Renamed != 0 {
		b.renamed++
	}
	if key.objectives != 0 {
		b.hasObjectives = true
		b.objectives.AddSpan(p.shared.config.Objectives, key.objectives, s.Duration, s.Flags, s.Weight)
	}
	drainer := p.assignDrainer(i, key)
	drainer.spans++
	slot := &b.slots[i]
	slot.Duration, slot.End, slot.Weight, slot.Flags = s.Duration, s.End, s.Weight, s.Flags
	slot.Key = key.id
}

// assignDrainer selects the drainer that counts the slot at index i, and returns its part of the batch.
func (p *Publisher) assignDrainer(i int, key *resolved) *drainerBatch {
	b := &p.batch
	drainer := p.route.Drainer(key.hash)
	b.hashes = append(b.hashes, key.hash)
	b.drainers[i] = uint16(drainer)
	return &b.perDrainer[drainer]
}

// resolveValue fills the slot at index i with a value of the span that was resolved last, p.snapshot.
func (p *Publisher) resolveValue(cycle *aggregate.Cycle, i int, v *span.Value) {
	b := &p.batch
	ofSpan := &b.slots[v.Snapshot]
	if ofSpan.Key == ignoredKey {
		b.ignore(i)
		b.ignoredValues++
		return
	}
	key := p.finder.findValue(cycle, &p.snapshot, v.Measure)
	p.assignDrainer(i, key).values++
	b.slots[i] = aggregate.Slot{
		Duration: v.Amount, End: ofSpan.End, Weight: 1, Key: key.id, Flags: v.Flags | span.IsValue, Place: ofSpan.Place,
	}
}

// claimTries is the maximum number of attempts to claim ring slots while other publishers claim at
// the same time.
const claimTries = 8

// claim reserves slots for the spans of the batch in one ring, the queue to a drainer, which counts them. It
// returns notDropped, or the reason why the whole batch is dropped.
func (p *Publisher) claim(drainerIndex int) DropReason {
	part := &p.batch.perDrainer[drainerIndex]
	aggregator := p.shared.config.Aggregator
	slots := part.spans + part.values
	if slots == 0 {
		return notDropped
	}
	if slots > aggregator.RingSlots() {
		return DropBatchTooLarge
	}
	spanRing := aggregator.Ring(drainerIndex)
	share := &p.shares[drainerIndex]
	share.removeDrained(spanRing.Drained())
	isAlone := p.shared.isAlone()
	if !share.allows(spanRing.Free(), slots, isAlone) {
		if isAlone {
			return DropRingFull // some slots stay free for a publisher that begins later
		}
		return DropOverShare // other publishers need the free slots
	}
	claim, reason := claimSlots(spanRing, slots)
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

// countHeldSlots charges the claimed slots of each ring to the publisher, whose share of a ring is limited.
func (p *Publisher) countHeldSlots() {
	b := &p.batch
	ringSlots := p.shared.config.Aggregator.RingSlots()
	for drainer := range b.perDrainer {
		claim := &b.perDrainer[drainer].claim
		if claim.Len() > 0 {
			p.shares[drainer].addRange(claim.End(), claim.Len(), ringSlots)
		}
	}
}

// publish passes the filled ring slots to the drainers. It counts the spans and values in entry and in the totals.
func (p *Publisher) publish(entry *entry) {
	b := &p.batch
	for i := range b.perDrainer {
		part := &b.perDrainer[i]
		if part.claim.Len() > 0 {
			part.claim.Publish()
			entry.spans.published += uint64(part.spans)
			entry.values.published += uint64(part.values)
		}
	}
	if b.hasObjectives {
		p.shared.addObjectives(p.cycleGuard.Cycle(), b.objectives)
	}
	entry.spans.ignored += uint64(b.ignored)
	entry.values.ignored += uint64(b.ignoredValues)
	totals := &p.shared.totals
	if b.hasCollapsed {
		totals.addCollapsed(&b.collapsed)
	}
	if p.isShared {
		b.shared = b.spans - b.ignored
	}
	if b.shared > 0 {
		totals.sharedOrigin.Add(uint64(b.shared))
	}
	if b.renamed > 0 {
		totals.renamed.Add(uint64(b.renamed))
	}
}

// leaveCycle allows the current cycle, an export interval, to end. It first gives up all ring slots that were claimed
// but not published, because they would block the ring. It also drops the reference to the message.
func (p *Publisher) leaveCycle() {
	for i := range p.batch.perDrainer {
		p.batch.perDrainer[i].claim.Abandon() // no effect after Publish
	}
	p.snapshot = snapshot{} // it refers to the message
	p.cycleGuard.Exit()
}

// endBatch resets the scratch after a batch. Retries of a batch need only one call.
func (p *Publisher) endBatch(maxBatch int) {
	p.batch.isResolved = false
	p.batch.trim(maxBatch)
}

// source yields the snapshots of a batch, from a message of the native protocol or from a request
// body that a receiver has counted.
type source struct {
	walker    wire.SpansWalker
	batch     *span.Batch // spans of a request body; nil for a message
	nextIndex int         // index in batch.Snapshots of the next snapshot
}

// len returns the number of snapshots of the batch.
func (src *source) len() int {
	if src.batch != nil {
		return len(src.batch.Snapshots)
	}
	return src.walker.Len()
}

// values returns the values of the snapshots. Messages of the native protocol have none.
func (src *source) values() []span.Value {
	if src.batch == nil {
		return nil
	}
	return src.batch.Values
}

// next reads the next snapshot into s. It returns false after the last one, or if the message is malformed.
func (src *source) next(s *snapshot) bool {
	isFromMessage := src.batch == nil
	if isFromMessage {
		return src.walker.Next(&s.Snapshot)
	}
	if src.nextIndex == len(src.batch.Snapshots) {
		return false
	}
	record := &src.batch.Snapshots[src.nextIndex]
	src.nextIndex++
	s.Snapshot = wire.Snapshot{
		Key:      src.batch.FingerprintOf(record), // identifies the key; only the labeler can make the key itself
		Duration: record.Duration, End: record.End, Flags: record.Flags, Weight: record.Weight,
	}
	s.labeler, s.span = src.batch.Labeler, record.Span
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
// publishers, which no agent counts, are dropped for the returned reason. If the reason IsRetryable, these
// spans are not counted as received, because the caller refuses the request and its sender retries.
func (s *Publishers) PublishTogether(commit func(), parts ...BatchPart) (reason DropReason, ok bool) {
	spans, values := uint64(0), uint64(0)
	for i := range parts {
		spans += uint64(len(parts[i].Batch.Snapshots))
		values += uint64(len(parts[i].Batch.Values))
	}
	if spans == 0 {
		commit()
		return 0, true
	}
	entry := s.totals.begin(spans, DropLeftToAgent)
	entry.values.received = values
	defer entry.end()
	noAgent := parts[0].Publisher.withoutAgent
	if noAgent {
		entry.reason = DropBug
	}
	defer s.leaveAll(parts)
	reason = s.claimTogether(parts, spans+values)
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

// claimTogether claims ring slots for the batches of all parts. It returns notDropped, or the reason why not all
// batches can be published. slots is the number of slots that all batches need together. The caller must call leaveAll
// afterwards, which gives up slots that were claimed but not published.
func (s *Publishers) claimTogether(parts []BatchPart, slots uint64) DropReason {
	aggregator := s.config.Aggregator
	slotsOfAllRings := uint64(aggregator.Drainers() * aggregator.RingSlots())
	if slots > slotsOfAllRings {
		return DropBatchTooLarge
	}
	for i := range parts {
		fromRequest := source{batch: parts[i].Batch}
		reason, _ := parts[i].Publisher.resolveAndClaim(fromRequest) // err is nil: only a message can be malformed
		if reason != notDropped {
			return reason
		}
	}
	return notDropped
}

// leaveAll calls leaveCycle and endBatch for the publisher of each part.
func (s *Publishers) leaveAll(parts []BatchPart) {
	for i := range parts {
		parts[i].Publisher.leaveCycle()
		parts[i].Publisher.endBatch(s.config.MaxBatch)
	}
}
