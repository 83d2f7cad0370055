package export

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// pushDestination is a destination that statistics are sent to: it encodes sealed cycles, queues
// the payloads and delivers them with retries. Destinations share no state, so none waits for
// another.
//
// The sealing goroutine calls accept. The sender goroutine (sender.go) decides which payload to
// send next, and how to handle the result.
type pushDestination struct {
	exporter Exporter
	cfg      Config
	log      *outcomeLog
	stats    *statsRecorder
	link     *Link
	queue    queue
	backoff  backoff // used only by the sender

	sequence    uint64            // sequence number of the next payload; used only by the sealing goroutine
	snapshots   atomic.Uint64     // number of the last snapshot
	undelivered undeliveredCycles // undelivered cycles; used for running totals

	finished chan finishedDelivery // from the deliveries to the sender
	queued   chan struct{}         // holds a token after a payload was queued

	acceptCtx     context.Context // ends when no more cycles are accepted
	stopAccepting context.CancelFunc
	sendCtx       context.Context // ends when nothing may be sent any more
	abort         context.CancelFunc
	running       sync.WaitGroup
}

// newPush returns a destination for a push exporter. The caller must call start.
func newPush(cfg Config, x Exporter) *pushDestination {
	d := &pushDestination{
		exporter: x,
		cfg:      cfg,
		log:      newOutcomeLog(cfg.Log, x),
		stats:    newStatsRecorder(x.HasValues),
		link:     newLink(),
		queue:    queue{maxBytes: cfg.RetryBytes, maxInFlight: cfg.MaxPayloadBytes, inOrder: x.InOrder},
		finished: make(chan finishedDelivery),
		queued:   make(chan struct{}, 1),
	}
	d.acceptCtx, d.stopAccepting = context.WithCancel(context.Background())
	d.sendCtx, d.abort = context.WithCancel(context.Background())
	return d
}

// start starts the sender, and Exporter.Watch. They run until end.
func (d *pushDestination) start() {
	d.running.Go(d.runSender)
	if d.exporter.Watch != nil {
		d.running.Go(func() { d.exporter.Watch(d.acceptCtx, d.link) })
	}
}

// Errors returned to clients that wait for a cycle.
var (
	errClosed      = errors.New("the daemon is shutting down")
	errNotWanted   = errors.New("the destination does not accept statistics")
	errUnencodable = errors.New("some series exceed the maximum payload size")
	errNotYet      = errors.New("the destination has not accepted the spans yet; the next payloads include them")
	errTooMany     = errors.New("too many exports are waiting for the destination")
)

// accept implements Destination. It encodes a cycle, the counts of one export interval, and queues the payloads. It
// does not wait until they are delivered. If the destination accepts no counts now, the spans are lost.
func (d *pushDestination) accept(c *Cycle) {
	entry := d.stats.addToHistory(c)
	if reason, err := d.checkAccepting(); err != nil {
		d.rejectCycle(c, entry, reason, err)
		return
	}
	began := time.Now()
	encoded := d.encode(c, entry, began)
	encodeTime := c.mergeTime + time.Since(began)
	d.stats.recordEncoded(entry, encoded, encodeTime)
}

// encode encodes a cycle, the counts of one export interval, and queues the payloads with the creation time now. Spans
// that cannot be encoded are lost, and count as unsent. entry describes the cycle in the history.
func (d *pushDestination) encode(c *Cycle, entry *Flush, now time.Time) Encoded {
	cycle := *c // a copy, because limits and numbers differ between destinations; they share cycle.state
	cycle.Limit = d.payloadLimit()
	d.removeQueuedGraph() // the new payloads contain a newer service graph
	if d.exporter.Cumulative {
		return d.encodeSnapshot(&cycle, entry, now)
	}
	encoded := d.exporter.Push.Encode(&cycle, func(p *Payload) {
		cycle.state.addPart()
		d.enqueue(p, &cycle, entry, now)
	})
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, &cycle, encoded.lost())
	return encoded
}

// encodeSnapshot encodes all running totals after a cycle, one export interval, and queues the payloads with the
// creation time now. Spans that cannot be encoded are lost, and count as unsent.
func (d *pushDestination) encodeSnapshot(c *Cycle, entry *Flush, now time.Time) Encoded {
	snap := d.beginSnapshot(c, now)
	encoded := d.exporter.Push.Encode(c, func(p *Payload) {
		p.snapshot = snap
		snap.addPendingPayload()
		d.enqueue(p, c, entry, now)
	})
	lost := d.undelivered.removeLost(snap.number, encoded.lost())
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, c, lost)
	isComplete := snap.endEncoding()
	if isComplete { // otherwise the last outcome of a payload completes the snapshot
		d.finishSnapshot(snap)
	}
	return encoded
}

// removeQueuedGraph removes the payloads of the service graph from the queue, because the payloads of the next export
// interval contain a newer graph.
func (d *pushDestination) removeQueuedGraph() {
	replaced := d.queue.removeGraph()
	d.recordReplaced(replaced...)
}

// rejectCycle counts the spans of a cycle, one export interval, as unsent for the given reason. It records err in
// entry, which /status shows, and reports err to the clients that wait for the delivery of the cycle.
func (d *pushDestination) rejectCycle(c *Cycle, entry *Flush, reason Reason, err error) {
	d.stats.recordUnsent(reason, c.amount)
	d.stats.changeEntry(entry, func(f *Flush) {
		f.Outcomes[reason.result()] = 1 // counts the cycle as one payload
		f.LastError = err.Error()
	})
	c.state.recordError(d.wrapError(err))
}

// beginSnapshot prepares for the payloads with all running totals after the cycle (export interval) c. It numbers c and
// adds it to the undelivered cycles. It removes earlier payloads from the queue, because the new ones contain their
// spans, too. The result tracks the new payloads.
func (d *pushDestination) beginSnapshot(c *Cycle, now time.Time) *snapshot {
	c.Number = d.snapshots.Add(1)
	c.FirstUndelivered = d.undelivered.firstNumber(c.Number) // the totals keep idle series with undelivered spans
	// Clients wait for Config.RetryAge at most.
	d.undelivered.answerOlderThan(now.Add(-d.cfg.RetryAge), errNotYet)
	if c.amount.Spans > 0 {
		d.addUndelivered(newUndeliveredCycle(c, c.Number, now))
	}
	replaced := d.queue.drain()
	d.recordReplaced(replaced...)
	return &snapshot{number: c.Number}
}

// addUndelivered adds a cycle to the undelivered cycles, which are export intervals. If there are then more than
// maxWaiting, the next cycle takes over the spans of the oldest one, and the clients that wait for the delivery of the
// oldest one get an error.
func (d *pushDestination) addUndelivered(c undeliveredCycle) {
	d.undelivered.add(c)
	for _, removed := range d.undelivered.mergeOldest(maxWaiting) {
		removed.answer(errTooMany)
		removed.settle() // the next cycle accounts for the spans
	}
}

// recordUnencodable records that spans or values of an export interval could not be encoded and are lost. It counts
// them as unsent, logs an error, and reports it to the clients that wait for the delivery of the interval. It does
// nothing if lost is 0.
func recordUnencodable(log *slog.Logger, stats *statsRecorder, x *Exporter, c *Cycle, lost Amount) {
	if lost == (Amount{}) {
		return
	}
	stats.recordUnsent(Unencodable, lost)
	log.Error("statistics can't be sent and are lost",
		"destination", x.Name, "spans", lost.Spans, "values", lost.Values, "error", errUnencodable)
	c.state.recordError(fmt.Errorf("send to %s: %w", x.Name, errUnencodable))
}

// checkAccepting returns an error if the destination is closed or does not want statistics at present. The first
// result is then the reason to count spans as unsent.
func (d *pushDestination) checkAccepting() (Reason, error) {
	if d.isClosed() {
		return Shutdown, errClosed
	}
	if !d.acceptsStatistics() {
		return NotWanted, errNotWanted
	}
	return "", nil
}

// acceptsStatistics reports whether the destination currently accepts statistics.
func (d *pushDestination) acceptsStatistics() bool {
	return d.exporter.AcceptsStatistics == nil || d.exporter.AcceptsStatistics()
}

// payloadLimit returns the maximum length of a payload in bytes: Config.MaxPayloadBytes, or the limit that the
// destination has reported if that is smaller. The result is at least MinPayloadBytes, because the counts of one label
// set can need that much, and cannot be split.
func (d *pushDestination) payloadLimit() int {
	limit := d.cfg.MaxPayloadBytes
	if d.exporter.PayloadLimit == nil {
		return limit
	}
	if reported := d.exporter.PayloadLimit(); reported > 0 {
		limit = min(limit, max(reported, MinPayloadBytes))
	}
	return limit
}

func (d *pushDestination) wrapError(err error) error {
	return fmt.Errorf("send to %s: %w", d.exporter.Name, err)
}

// enqueue adds the payload p to the queue, and notifies the sender. p was created at now, and contains spans of the
// cycle c. If the queue then exceeds its limits, enqueue removes the oldest payloads, and records them as lost.
// entry is the entry for the cycle in the history.
func (d *pushDestination) enqueue(p *Payload, c *Cycle, entry *Flush, now time.Time) {
	p.cycle = c.state
	p.historyEntry = entry
	p.created = now
	p.sequence = d.sequence
	d.sequence++
	d.stats.recordPayload(p)
	evicted := d.queue.put(p)
	d.recordLost(QueueFull, evicted...)
	notify(d.queued)
}

// recordAccepted records that the destination has accepted a payload, but may have rejected some of its spans. If
// rejectedSpans is not 0, the clients that wait for the delivery of the payload get an error.
func (d *pushDestination) recordAccepted(p *Payload, rejectedSpans uint64) {
	d.stats.recordResult(p, ResultAccepted)
	var err error
	if rejectedSpans > 0 {
		err = d.payloadError(Rejected, p)
	}
	isRunningTotals := p.snapshot != nil
	if isRunningTotals {
		d.recordSnapshotAccepted(p.snapshot, rejectedSpans, err)
		return
	}
	d.stats.recordDelivered(p.amount(), rejectedSpans)
	p.cycle.resolvePart(err)
}

// recordSnapshotAccepted records that the destination has accepted one payload of a snapshot, the payloads with all
// running totals after an export interval. The spans count as delivered after the last of these payloads. err is
// the error for clients that wait for the delivery, or nil.
func (d *pushDestination) recordSnapshotAccepted(s *snapshot, rejectedSpans uint64, err error) {
	if err != nil {
		d.undelivered.answerUpTo(s.number, err)
	}
	d.recordSnapshotOutcome(s, payloadOutcome{rejectedSpans: rejectedSpans})
}

// recordLost records that payloads of deltas or of running totals will not be delivered, for the given reason.
func (d *pushDestination) recordLost(reason Reason, payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.recordResult(p, reason.result())
		err := d.payloadError(reason, p)
		if hasDeltas := p.snapshot == nil; hasDeltas {
			d.recordLostDeltas(p, reason, err)
			continue
		}
		d.undelivered.answerUpTo(p.snapshot.number, err)
		d.recordUnaccepted(p)
	}
}

// recordLostDeltas counts the spans of a payload of deltas, the counts of one export interval, as unsent. It reports
// err to the clients that wait for the delivery of the interval.
func (d *pushDestination) recordLostDeltas(p *Payload, reason Reason, err error) {
	d.stats.recordUnsent(reason, p.amount())
	d.log.logLost(reason, p)
	p.cycle.answerPart(err)
	if reason != Shutdown { // otherwise they stay in the recovery file, so that the next daemon can report the loss
		p.cycle.settlePart()
	}
}

// recordReplaced records that payloads of running totals are not sent, because newer payloads contain the same totals.
func (d *pushDestination) recordReplaced(payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.recordResult(p, ResultSuperseded)
		if isPartOfSnapshot := p.snapshot != nil; isPartOfSnapshot {
			d.recordUnaccepted(p)
			continue
		}
		p.cycle.resolvePart(nil) // a service graph; payloads of deltas contain the spans of its cycle
	}
}

// recordUnaccepted records that the destination has not accepted a payload of running totals. Its spans stay pending,
// because the payloads of the next cycle contain them again.
func (d *pushDestination) recordUnaccepted(p *Payload) {
	if p.IsGraph { // its spans are counted with the other payloads, which contain them, too
		d.recordSnapshotOutcome(p.snapshot, payloadOutcome{})
		return
	}
	d.recordSnapshotOutcome(p.snapshot, payloadOutcome{isUndelivered: true, undeliveredSpans: p.undeliveredSpans()})
}

// recordSnapshotOutcome records the outcome of one payload of a snapshot, the set of payloads with all running totals
// after an export interval. If it is the last outcome, the delivered spans are counted.
func (d *pushDestination) recordSnapshotOutcome(s *snapshot, o payloadOutcome) {
	isComplete := s.recordOutcome(o)
	if isComplete {
		d.finishSnapshot(s)
	}
}

// finishSnapshot counts the delivered spans after all payloads of a snapshot have an outcome. If one of these payloads
// was not accepted, its spans stay pending, because the next snapshot contains them again.
func (d *pushDestination) finishSnapshot(s *snapshot) {
	if s.hasUndelivered {
		deliveredSpans := d.undelivered.removeDelivered(s.number, s.undeliveredSpans)
		d.stats.recordDelivered(Amount{Spans: deliveredSpans}, s.rejectedSpans)
		return
	}
	d.recordSnapshotDelivered(s)
}

// recordSnapshotDelivered records that a snapshot of the running totals was delivered. It counts the spans of all
// undelivered cycles (export intervals) up to the snapshot as delivered. It settles these cycles, so that their spans
// are not reported as lost after a crash, and answers the clients that wait for their delivery.
func (d *pushDestination) recordSnapshotDelivered(s *snapshot) {
	cycles := d.undelivered.removeUpTo(s.number)
	var delivered Amount
	for _, c := range cycles {
		delivered = delivered.plus(c.amount)
	}
	d.stats.recordDelivered(delivered, s.rejectedSpans)
	for _, c := range cycles {
		c.settle()
		c.answer(nil)
	}
}

// payloadError returns the error for clients that wait for the delivery of a payload. The error contains reason,
// which is why the payload or a part of it was not delivered, and the last error of a request, if any.
func (d *pushDestination) payloadError(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", d.exporter.Name, reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w",
		d.exporter.Name, reason, p.tries, p.lastErr)
}

// recordSealed implements Destination. It counts the spans and values of a new cycle (export interval) as pending, and
// those that the daemon has discarded as unsent. It returns true if accept must be called with the cycle.
func (d *pushDestination) recordSealed(pending, discarded Amount) (mustAccept bool) {
	if d.isDiscovering() { // no spans are pending for a destination that might never be found
		d.stats.change(func(s *Stats) { s.BeforeDiscovery += pending.Spans + discarded.Spans })
		return false
	}
	d.stats.recordSealed(pending, discarded)
	return pending.Spans > 0 || d.acceptsEmptyCycles()
}

// acceptsEmptyCycles reports whether the destination also gets the export intervals without spans. Running totals
// are sent in each interval, because receivers forget series that are not sent.
func (d *pushDestination) acceptsEmptyCycles() bool {
	hasRunningTotals := d.exporter.Cumulative || d.exporter.GraphMemory != nil || d.exporter.HasObjectives
	return hasRunningTotals && !d.isClosed()
}

// isClosed reports whether close was called.
func (d *pushDestination) isClosed() bool { return d.acceptCtx.Err() != nil }

// isDiscovering reports whether the destination is auto-discovered and has not been found yet.
func (d *pushDestination) isDiscovering() bool {
	return d.exporter.Discovered != nil && !d.exporter.Discovered()
}

// close implements Destination.
func (d *pushDestination) close() { d.stopAccepting() }

// finishSending implements Destination. It waits until the sender has tried to send each queued payload once,
// and all goroutines have returned. When ctx ends, it aborts sending.
func (d *pushDestination) finishSending(ctx context.Context) {
	stopAbort := context.AfterFunc(ctx, d.abort)
	defer stopAbort()
	d.running.Wait()
	d.abort()
}

// settleRemaining implements Destination. At shutdown, it counts the spans that no delivered payload of running totals
// contains as unsent, and reports an error to the clients that wait for their delivery. finishSending must have
// returned before, so that no payload is in flight.
func (d *pushDestination) settleRemaining() {
	cycles := d.undelivered.removeUpTo(math.MaxUint64) // all
	for _, c := range cycles {
		d.stats.recordUnsent(Shutdown, c.amount)
		c.answer(d.wrapError(errClosed))
		c.settle()
	}
}

// Name implements Destination.
func (d *pushDestination) Name() string { return d.exporter.Name }

// URL implements Destination.
func (d *pushDestination) URL() string { return d.exporter.URL }

// Stats implements Destination.
func (d *pushDestination) Stats() Stats {
	s := d.stats.read()
	s.QueuePayloads, s.QueueBytes = d.queue.size()
	s.QueueMaxBytes = d.cfg.RetryBytes
	s.MaxAge = d.cfg.RetryAge
	if created, isAny := d.queue.oldest(); isAny {
		s.OldestAge = time.Since(created)
	}
	if sealed, isAny := d.undelivered.oldestSealed(); isAny {
		s.OldestAge = max(s.OldestAge, time.Since(sealed))
	}
	s.IsDiscovering = d.isDiscovering()
	s.Reachable = d.link.isReachable.Load()
	s.IsAccepting = d.acceptsStatistics() && !d.link.isRefusing.Load()
	return s
}

// Flushes implements Destination.
func (d *pushDestination) Flushes() []Flush { return d.stats.flushes() }
