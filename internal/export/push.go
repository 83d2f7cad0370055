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

	sequence  uint64        // of the next payload; used only by the sealing goroutine
	snapshots atomic.Uint64 // number of the last snapshot
	open      openCycles    // for running totals

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
	encodeTime := c.merging + time.Since(began)
	d.stats.recordEncoded(entry, encoded, encodeTime)
}

// encode encodes a cycle, the counts of one export interval, and queues the payloads with the creation time now. It
// counts spans that could not be encoded as unsent. entry describes the cycle in the history.
func (d *pushDestination) encode(c *Cycle, entry *Flush, now time.Time) Encoded {
	cycle := *c // a copy, because other destinations have other limits and numbers
	cycle.Limit = d.payloadLimit()
	d.removeQueuedGraph() // the new payloads contain a newer service graph
	if d.exporter.Cumulative {
		return d.encodeSnapshot(&cycle, entry, now)
	}
	encoded := d.exporter.Push.Encode(&cycle, func(p *Payload) {
		cycle.state.addPendingPart()
		d.enqueue(p, &cycle, entry, now)
	})
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, &cycle, encoded.lost())
	return encoded
}

// encodeSnapshot encodes all running totals after a cycle, one export interval, and queues the payloads with the
// creation time now. It counts spans that could not be encoded as unsent.
func (d *pushDestination) encodeSnapshot(c *Cycle, entry *Flush, now time.Time) Encoded {
	snap := d.beginSnapshot(c, now)
	encoded := d.exporter.Push.Encode(c, func(p *Payload) {
		p.snapshot = snap
		snap.addPendingPayload()
		d.enqueue(p, c, entry, now)
	})
	lost := d.open.removeLost(snap.number, encoded.lost())
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, c, lost)
	isComplete := snap.endEncoding() // if all payloads have outcomes already
	if isComplete {
		d.finishSnapshot(snap)
	}
	return encoded
}

// removeQueuedGraph removes the payloads of the service graph from the queue, because the payloads of the next export
// interval contain a newer graph.
func (d *pushDestination) removeQueuedGraph() {
	for _, p := range d.queue.removeGraph() {
		d.stats.recordResult(p, ResultSuperseded)
		if p.snapshot != nil {
			d.recordUnaccepted(p)
			continue
		}
		p.cycle.resolvePart(nil) // no error for waiting clients: other payloads contain the spans
	}
}

// rejectCycle counts the spans of a cycle, one export interval, as unsent for the given reason. It records err in
// entry, which /status shows, and reports err to the clients that wait for the delivery of the cycle.
func (d *pushDestination) rejectCycle(c *Cycle, entry *Flush, reason Reason, err error) {
	d.stats.recordUnsent(reason, c.amount)
	d.stats.changeEntry(entry, func(f *Flush) {
		f.Outcomes[reason.result()] = 1 // the cycle counts as one payload
		f.LastError = err.Error()
	})
	c.state.recordError(d.wrapError(err))
}

// beginSnapshot prepares for the payloads with all running totals after the cycle (export interval) c. It numbers c,
// adds it to the open cycles, those with undelivered spans, and removes the payloads of earlier cycles from the queue,
// because the new ones contain their spans. The result tracks the new payloads.
func (d *pushDestination) beginSnapshot(c *Cycle, now time.Time) *snapshot {
	c.Number = d.snapshots.Add(1)
	c.FirstUnsettled = d.open.firstUndelivered(c.Number)
	d.open.answerOlderThan(now.Add(-d.cfg.RetryAge), errNotYet) // clients wait for Config.RetryAge at most
	if c.amount.Spans > 0 {
		d.addOpenCycle(newOpenCycle(c, c.Number, now))
	}
	replaced := d.queue.drain()
	d.recordReplaced(replaced...)
	return &snapshot{number: c.Number}
}

// addOpenCycle adds a cycle to the open cycles, the export intervals with undelivered spans. If there are more than
// maxWaiting, it merges the oldest ones, and reports an error to the clients that wait for their delivery.
func (d *pushDestination) addOpenCycle(c openCycle) {
	d.open.add(c)
	for _, merged := range d.open.mergeOldest(maxWaiting) {
		merged.answer(errTooMany)
		merged.settle()
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
	if !d.wantsStatistics() {
		return NotWanted, errNotWanted
	}
	return "", nil
}

// wantsStatistics reports whether the destination currently accepts statistics.
func (d *pushDestination) wantsStatistics() bool {
	if d.exporter.Wants == nil {
		return true
	}
	statistics, _ := d.exporter.Wants()
	return statistics
}

// reportedLimit returns the maximum length of a payload that the destination has reported, or 0 if it has not reported
// any.
func (d *pushDestination) reportedLimit() int {
	if d.exporter.Wants == nil {
		return 0
	}
	_, payloadBytes := d.exporter.Wants()
	return payloadBytes
}

// payloadLimit returns the maximum length of a payload: Config.MaxPayloadBytes, or the limit that the destination
// reports if that is smaller. The reported limit is raised to MinPayloadBytes, because the counts of one label set,
// which cannot be split, may need that much.
func (d *pushDestination) payloadLimit() int {
	reportedLimit := d.reportedLimit()
	if reportedLimit == 0 { // it has reported none
		return d.cfg.MaxPayloadBytes
	}
	return min(d.cfg.MaxPayloadBytes, max(reportedLimit, MinPayloadBytes))
}

func (d *pushDestination) wrapError(err error) error {
	return fmt.Errorf("send to %s: %w", d.exporter.Name, err)
}

// enqueue adds the payload p to the queue, and notifies the sender. p was created at now, and contains spans of the
// cycle c. If the queue then exceeds its limits, enqueue removes the oldest payloads, and records them as lost.
// entry is the entry for the cycle in the history. The caller has counted p as pending in its snapshot or cycle.
func (d *pushDestination) enqueue(p *Payload, c *Cycle, entry *Flush, now time.Time) {
	p.cycle = c.state
	p.flush = entry
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
		d.open.answerUpTo(s.number, err)
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
		d.open.answerUpTo(p.snapshot.number, err)
		d.recordUnaccepted(p)
	}
}

// recordLostDeltas counts the spans of a payload as unsent, and reports err to the clients that wait for their
// delivery.
func (d *pushDestination) recordLostDeltas(p *Payload, reason Reason, err error) {
	d.stats.recordUnsent(reason, p.amount())
	d.log.logLost(reason, p)
	p.cycle.answerPart(err)
	// At shutdown, the spans stay in the recovery file: if the daemon is killed before it has reported the loss, the
	// next daemon reports it instead.
	if reason != Shutdown {
		p.cycle.settlePart()
	}
}

// recordReplaced records that payloads of running totals are not sent, because newer payloads contain their spans.
func (d *pushDestination) recordReplaced(payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.recordResult(p, ResultSuperseded)
		d.recordUnaccepted(p)
	}
}

// recordUnaccepted records that the destination has not accepted a payload of running totals. Its spans stay pending,
// because the payloads of the next cycle contain them again.
func (d *pushDestination) recordUnaccepted(p *Payload) {
	outcome := payloadOutcome{hasFailed: true, undeliveredSpans: p.undeliveredSpans()}
	if p.IsGraph {
		outcome = payloadOutcome{} // no span is undelivered, because other payloads contain the spans of the graph
	}
	d.recordSnapshotOutcome(p.snapshot, outcome)
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
	if !s.hasFailed {
		d.recordSnapshotDelivered(s)
		return
	}
	deliveredSpans := d.open.removeAllBut(s.undeliveredSpans, s.number)
	d.stats.recordDelivered(Amount{Spans: deliveredSpans}, s.rejectedSpans)
}

// recordSnapshotDelivered records that a snapshot of the running totals was delivered. It counts the spans of all
// open cycles (export intervals with undelivered spans) up to the snapshot as delivered. It settles these cycles,
// so that their spans are not reported as lost after a crash, and answers the clients that wait for their delivery.
func (d *pushDestination) recordSnapshotDelivered(s *snapshot) {
	cycles := d.open.removeUpTo(s.number)
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

// addPending implements Destination. It counts the spans and values of a new cycle (export interval) as pending. It
// counts cleared ones, which were discarded because no destination wanted them, as unsent. It returns true if the destination must
// accept the cycle.
func (d *pushDestination) addPending(cleared, sealed Amount) (mustAccept bool) {
	if d.isDiscovering() { // the spans must not be pending for a destination that may never be found
		d.stats.change(func(s *Stats) { s.BeforeDiscovery += cleared.Spans + sealed.Spans })
		return false
	}
	d.stats.recordSealed(cleared, sealed)
	return sealed.Spans > 0 || d.acceptsEmptyCycles()
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

// settleRemaining implements Destination. At shutdown, it removes the open cycles, export intervals with undelivered spans of
// running totals. It counts these spans as unsent, and reports an error to the clients that wait for their delivery.
// finishSending must have returned before, so that no payload is in flight.
func (d *pushDestination) settleRemaining() {
	cycles := d.open.removeUpTo(math.MaxUint64) // all
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
	if sealed, isAny := d.open.oldestSealed(); isAny {
		s.OldestAge = max(s.OldestAge, time.Since(sealed))
	}
	s.IsDiscovering = d.isDiscovering()
	s.Reachable = d.link.isReachable.Load()
	s.IsAccepting = d.wantsStatistics() && !d.link.isRefusing.Load()
	return s
}

// Flushes implements Destination.
func (d *pushDestination) Flushes() []Flush { return d.stats.flushes() }
