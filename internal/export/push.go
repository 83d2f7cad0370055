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

// newPush returns a destination for a push exporter. start starts its goroutines.
func newPush(cfg Config, x Exporter) *pushDestination {
	d := &pushDestination{
		exporter: x,
		cfg:      cfg,
		log:      newOutcomeLog(cfg.Log, x),
		stats:    newStatsRecorder(),
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

// accept implements Destination. It encodes a cycle and queues its payloads, and does not wait for
// the destination. Before, join has counted the spans of the cycle as pending.
func (d *pushDestination) accept(c *Cycle) {
	flush := d.stats.beginFlush(c)
	if reason, err := d.checkAccepting(); err != nil {
		d.stats.recordUnsent(reason, c.spans)
		d.stats.changeFlush(flush, func(f *Flush) {
			f.Outcomes[reason.result()] = 1
			f.LastError = err.Error()
		})
		c.state.recordError(d.wrapError(err))
		return
	}
	began := time.Now()
	cycle := *c // other destinations have other limits and numbers
	cycle.Limit = d.payloadLimit()
	var snap *snapshot
	if d.exporter.Cumulative {
		snap = d.beginSnapshot(&cycle, began)
		defer d.recordSnapshotOutcome(snap, payloadOutcome{}) // pending includes one until all payloads are encoded
	}
	encoded := d.exporter.Push.Encode(&cycle, func(p *Payload) {
		p.born, p.cycle, p.snapshot, p.flush = began, c.state, snap, flush
		d.enqueue(p)
	})
	took := c.merging + time.Since(began)
	d.stats.changeFlush(flush, func(f *Flush) {
		f.Unencodable = encoded.Unencodable
		f.EncodeSeconds = took.Seconds()
	})
	d.stats.change(func(s *Stats) { s.Totals = encoded.Totals })
	lost := encoded.Unencodable
	if snap != nil { // spans of a running total can belong to any open cycle
		lost = d.open.subtractLost(snap.number, lost)
	}
	recordUnencodable(d.cfg.Log, d.stats, &d.exporter, c, lost)
}

// beginSnapshot begins a snapshot of the running totals after a cycle. It sets the numbers of the
// cycle and adds the cycle to the open cycles. It removes the payloads of earlier snapshots from the
// queue, because the new payloads will contain the same totals.
func (d *pushDestination) beginSnapshot(c *Cycle, now time.Time) *snapshot {
	snap := &snapshot{number: d.snapshots.Add(1), pending: 1}
	d.open.answerOlderThan(now.Add(-d.cfg.RetryAge), errNotYet)
	c.Number = snap.number
	c.FirstUnsettled = d.open.firstOpen(snap.number)
	if c.spans > 0 {
		d.open.add(openCycle{state: c.state, first: snap.number, number: snap.number, spans: c.spans, born: now})
	}
	for _, merged := range d.open.mergeOldest(maxWaiting) {
		merged.answer(errTooMany)
		merged.settle()
	}
	d.recordReplaced(d.queue.drain()...)
	return snap
}

// recordUnencodable records that the given number of spans could not be encoded, so they are lost. It
// counts them as unsent, logs an error, and reports it to the clients that wait for the cycle. It
// does nothing if spans is 0.
func recordUnencodable(log *slog.Logger, stats *statsRecorder, x *Exporter, c *Cycle, spans uint64) {
	if spans == 0 {
		return
	}
	stats.recordUnsent(Unencodable, spans)
	log.Error("statistics can't be sent and are lost",
		"destination", x.Name, "spans", spans, "error", errUnencodable)
	c.state.recordError(fmt.Errorf("send to %s: %w", x.Name, errUnencodable))
}

// checkAccepting returns an error if the destination does not accept cycles at present, and the
// reason under which the spans of a cycle are then counted as unsent.
func (d *pushDestination) checkAccepting() (Reason, error) {
	if isClosed := d.acceptCtx.Err() != nil; isClosed {
		return Shutdown, errClosed
	}
	if wantsStatistics, _ := d.wants(); !wantsStatistics {
		return NotWanted, errNotWanted
	}
	return "", nil
}

// wants returns Exporter.Wants, or its default.
func (d *pushDestination) wants() (statistics bool, payloadBytes int) {
	if d.exporter.Wants == nil {
		return true, 0
	}
	return d.exporter.Wants()
}

// payloadLimit returns the maximum length of a payload: Config.MaxPayloadBytes, or the limit that the
// destination reports if that is smaller. The limit is at least MinPayloadBytes, because the counts
// of one key, which cannot be split, may need that much.
func (d *pushDestination) payloadLimit() int {
	_, reportedLimit := d.wants()
	if reportedLimit == 0 {
		return d.cfg.MaxPayloadBytes
	}
	return min(d.cfg.MaxPayloadBytes, max(reportedLimit, MinPayloadBytes))
}

func (d *pushDestination) wrapError(err error) error {
	return fmt.Errorf("send to %s: %w", d.exporter.Name, err)
}

// enqueue assigns a sequence number to a new payload and queues it. If the queue exceeds its limits,
// payloads are evicted, and enqueue records them as lost.
func (d *pushDestination) enqueue(p *Payload) {
	if p.snapshot != nil {
		p.snapshot.add()
	} else {
		p.cycle.addPart()
	}
	p.sequence = d.sequence
	d.sequence++
	d.stats.recordPayload(p)
	evicted := d.queue.put(p)
	d.recordLost(QueueFull, evicted...)
	notify(d.queued)
}

// recordAccepted records that the destination has accepted a payload. rejectedSpans is the number of
// spans in the payload that the destination rejected nevertheless.
func (d *pushDestination) recordAccepted(p *Payload, rejectedSpans uint64) {
	d.stats.recordResult(p, ResultAccepted)
	var err error
	if rejectedSpans > 0 {
		err = d.payloadError(Rejected, p)
	}
	if isRunningTotal := p.snapshot != nil; isRunningTotal {
		if err != nil {
			d.open.answerUpTo(p.snapshot.number, err)
		}
		d.recordSnapshotOutcome(p.snapshot, payloadOutcome{rejected: rejectedSpans})
		return
	}
	d.stats.recordDelivered(p.Spans, rejectedSpans)
	p.cycle.resolvePart(err)
}

// recordLost records that payloads will not be delivered. Spans in payloads of deltas are lost. Spans
// in running totals stay pending, because the next snapshot contains them again. It does not settle
// cycles whose payloads are abandoned at shutdown: if this daemon is killed before it has reported
// the loss, the next daemon reports it.
func (d *pushDestination) recordLost(reason Reason, payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.recordResult(p, reason.result())
		err := d.payloadError(reason, p)
		if isRunningTotal := p.snapshot != nil; isRunningTotal {
			d.open.answerUpTo(p.snapshot.number, err)
			d.recordSnapshotOutcome(p.snapshot, payloadOutcome{isMissing: true, undelivered: p.Undelivered})
			continue
		}
		d.stats.recordUnsent(reason, p.Spans)
		d.log.logLost(reason, p)
		p.cycle.answerPart(err)
		if reason != Shutdown {
			p.cycle.settlePart()
		}
	}
}

// recordReplaced records that payloads of running totals are not sent, because a newer snapshot
// contains their spans again.
func (d *pushDestination) recordReplaced(payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.recordResult(p, ResultSuperseded)
		d.recordSnapshotOutcome(p.snapshot, payloadOutcome{isMissing: true, undelivered: p.Undelivered})
	}
}

// recordSnapshotOutcome records the outcome of one payload of a snapshot. When all payloads have an
// outcome, it counts the delivered spans. It settles the cycles in the snapshot if all payloads were
// accepted. Otherwise the cycles stay open, because the next snapshot contains their spans again.
func (d *pushDestination) recordSnapshotOutcome(s *snapshot, o payloadOutcome) {
	isLast := s.recordOutcome(o)
	if !isLast {
		return
	}
	if s.isMissing {
		deliveredSpans := d.open.subtractDelivered(s.number, s.missing)
		d.stats.recordDelivered(deliveredSpans, s.rejected)
		return
	}
	cycles := d.open.removeUpTo(s.number)
	deliveredSpans := uint64(0)
	for i := range cycles {
		deliveredSpans += cycles[i].spans
	}
	d.stats.recordDelivered(deliveredSpans, s.rejected)
	for i := range cycles {
		cycles[i].settle()
		cycles[i].answer(nil)
	}
}

// payloadError returns the error for clients that wait for a payload. reason is why the payload, or
// a part of it, was not delivered.
func (d *pushDestination) payloadError(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", d.exporter.Name, reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w",
		d.exporter.Name, reason, p.tries, p.lastErr)
}

// join implements Destination. A destination of running totals also accepts cycles without spans,
// until it is closed.
func (d *pushDestination) join(cleared, spans uint64) (participates bool) {
	if d.isDiscovering() {
		d.stats.change(func(s *Stats) { s.BeforeDiscovery += cleared + spans })
		return false
	}
	d.stats.addPending(cleared + spans)
	d.stats.recordUnsent(NotWanted, cleared)
	isClosed := d.acceptCtx.Err() != nil
	acceptsEmptyCycles := d.exporter.Cumulative && !isClosed
	return spans > 0 || acceptsEmptyCycles
}

// isDiscovering reports whether the destination is auto-discovered and has not been found yet.
func (d *pushDestination) isDiscovering() bool {
	return d.exporter.Discovered != nil && !d.exporter.Discovered()
}

// close implements Destination.
func (d *pushDestination) close() { d.stopAccepting() }

// end implements Destination. It waits until the sender has tried to send each queued payload once,
// and all goroutines have returned. When ctx ends, it aborts sending.
func (d *pushDestination) end(ctx context.Context) {
	stopAbort := context.AfterFunc(ctx, d.abort)
	defer stopAbort()
	d.running.Wait()
	d.abort()
}

// settle implements Destination. It counts the undelivered spans of running totals as unsent. (All
// payloads of deltas have their outcomes already.)
func (d *pushDestination) settle() {
	unsettled := d.open.removeUpTo(math.MaxUint64)
	for _, c := range unsettled {
		d.stats.recordUnsent(Shutdown, c.spans)
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
	if born, ok := d.queue.oldest(); ok {
		s.OldestAge = time.Since(born)
	}
	if born, ok := d.open.oldest(); ok {
		s.OldestAge = max(s.OldestAge, time.Since(born))
	}
	s.IsDiscovering = d.isDiscovering()
	s.Reachable = d.link.isReachable.Load()
	wantsStatistics, _ := d.wants()
	s.IsAccepting = wantsStatistics && !d.link.isRefusing.Load()
	return s
}

// Flushes implements Destination.
func (d *pushDestination) Flushes() []Flush { return d.stats.flushes() }
