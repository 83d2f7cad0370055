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
	d.running.Go(d.send)
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
	if reason, err := d.refusal(); err != nil {
		d.stats.unsent(reason, c.spans)
		d.stats.changeFlush(flush, func(f *Flush) { f.Outcomes[reason.result()], f.LastError = 1, err.Error() })
		c.state.fail(d.wrapError(err))
		return
	}
	began := time.Now()
	cycle := *c
	cycle.Limit = d.payloadLimit()
	var snap *snapshot
	if d.exporter.Cumulative {
		snap = d.beginSnapshot(&cycle, began)
		defer d.endPayload(snap, payloadOutcome{}) // pending includes one until all payloads are encoded
	}
	encoded := d.exporter.Push.Encode(&cycle, func(p *Payload) {
		p.born, p.cycle, p.snapshot, p.flush = began, c.state, snap, flush
		d.enqueue(p)
	})
	took := c.merging + time.Since(began)
	d.stats.changeFlush(flush, func(f *Flush) {
		f.Unencodable, f.EncodeSeconds = encoded.Unencodable, took.Seconds()
	})
	d.stats.change(func(s *Stats) { s.Totals = encoded.Totals })
	lost := encoded.Unencodable
	if snap != nil { // spans of a running total can belong to any open cycle
		lost = d.open.subtractLost(lost, snap.number)
	}
	recordUnencoded(d.cfg.Log, d.stats, &d.exporter, c, lost)
}

// beginSnapshot begins a snapshot of the running totals and makes the cycle an open one. It removes
// the payloads of earlier snapshots from the queue, because the new payloads contain the same
// totals.
func (d *pushDestination) beginSnapshot(c *Cycle, now time.Time) *snapshot {
	snap := &snapshot{number: d.snapshots.Add(1), pending: 1}
	d.open.notifyOlder(now.Add(-d.cfg.RetryAge), errNotYet)
	c.Number, c.FirstUnsettled = snap.number, d.open.firstUnsettled(snap.number)
	if c.spans > 0 {
		d.open.add(openCycle{state: c.state, first: snap.number, number: snap.number, spans: c.spans, born: now})
	}
	for _, removed := range d.open.mergeOldest(maxWaiting) {
		removed.notifyClients(errTooMany)
		removed.state.settle()
	}
	d.recordReplaced(d.queue.drain()...)
	return snap
}

// recordUnencoded records the spans of Encoded.Unencodable as unsent, logs them, and reports the
// loss to the clients that wait for the cycle.
func recordUnencoded(log *slog.Logger, stats *statsRecorder, x *Exporter, c *Cycle, spans uint64) {
	if spans == 0 {
		return
	}
	stats.unsent(Unencodable, spans)
	log.Error("statistics can't be sent and are lost",
		"destination", x.Name, "spans", spans, "error", errUnencodable)
	c.state.fail(fmt.Errorf("send to %s: %w", x.Name, errUnencodable))
}

// refusal returns an error, and its reason, if the destination accepts no cycles at present.
func (d *pushDestination) refusal() (Reason, error) {
	if d.acceptCtx.Err() != nil {
		return Shutdown, errClosed
	}
	if wanted, _ := d.wants(); !wanted {
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

// payloadLimit returns the maximum length of a payload: the smaller one of Config.MaxPayloadBytes
// and the limit that the destination reports. A reported limit counts as at least MinPayloadBytes,
// which is enough for one group.
func (d *pushDestination) payloadLimit() int {
	if _, limit := d.wants(); limit > 0 {
		return min(d.cfg.MaxPayloadBytes, max(limit, MinPayloadBytes))
	}
	return d.cfg.MaxPayloadBytes
}

func (d *pushDestination) wrapError(err error) error {
	return fmt.Errorf("send to %s: %w", d.exporter.Name, err)
}

// enqueue assigns a sequence number to a new payload and queues it.
func (d *pushDestination) enqueue(p *Payload) {
	if p.snapshot != nil {
		p.snapshot.add()
	} else {
		p.cycle.add()
	}
	p.sequence = d.sequence
	d.sequence++
	d.stats.addPayload(p)
	d.recordLost(QueueFull, d.queue.put(p)...)
	notify(d.queued)
}

// recordAccepted records the outcome of an accepted payload. rejected is the number of its spans that
// the destination rejected nevertheless.
func (d *pushDestination) recordAccepted(p *Payload, rejected uint64) {
	d.stats.endPayload(p, ResultAccepted)
	var err error
	if rejected > 0 {
		err = d.payloadError(Rejected, p)
	}
	if p.snapshot != nil { // running totals: endPayload accounts for the spans, per snapshot
		d.notifyClients(p.snapshot, err)
		d.endPayload(p.snapshot, payloadOutcome{rejected: rejected})
		return
	}
	d.stats.delivered(p.Spans, rejected) // deltas: each payload accounts for its own spans
	p.cycle.resolve(err)
}

// recordLost records the outcome of abandoned payloads. The spans of running totals stay pending,
// because the next snapshot contains them again. Cycles of payloads abandoned at shutdown are not
// settled, so that the next daemon counts their spans as lost if this one is killed before it has
// reported the loss.
func (d *pushDestination) recordLost(reason Reason, payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.endPayload(p, reason.result())
		err := d.payloadError(reason, p)
		if p.snapshot != nil {
			d.notifyClients(p.snapshot, err)
			d.endPayload(p.snapshot, payloadOutcome{isMissing: true, undelivered: p.Undelivered})
			continue
		}
		d.stats.unsent(reason, p.Spans)
		d.log.logLost(reason, p)
		p.cycle.notifyClients(err)
		if reason != Shutdown {
			p.cycle.settle()
		}
	}
}

// recordReplaced records the outcome of payloads that a newer snapshot replaces.
func (d *pushDestination) recordReplaced(payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.endPayload(p, ResultSuperseded)
		d.endPayload(p.snapshot, payloadOutcome{isMissing: true, undelivered: p.Undelivered})
	}
}

// notifyClients passes an error, if it is not nil, to the clients that wait for a cycle whose spans
// the snapshot contains.
func (d *pushDestination) notifyClients(s *snapshot, err error) {
	if err != nil {
		d.open.notifyUpTo(s.number, err)
	}
}

// endPayload records the outcome of one payload of a snapshot. After the last one, it settles the
// open cycles up to the snapshot, or keeps them open if a payload is missing.
func (d *pushDestination) endPayload(s *snapshot, o payloadOutcome) {
	if isLast := s.end(o); !isLast {
		return
	}
	if s.isMissing {
		d.stats.delivered(d.open.keepMissing(s.number, s.missing), s.rejected)
		return
	}
	cycles, spans := d.open.removeUpTo(s.number), uint64(0)
	for i := range cycles {
		spans += cycles[i].spans
	}
	d.stats.delivered(spans, s.rejected)
	for i := range cycles {
		cycles[i].state.settle()
		cycles[i].notifyClients(nil)
	}
}

// payloadError returns the error for clients that wait for a payload with the given outcome.
func (d *pushDestination) payloadError(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", d.exporter.Name, reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w",
		d.exporter.Name, reason, p.tries, p.lastErr)
}

// join implements Destination.
func (d *pushDestination) join(cleared, spans uint64) (participates bool) {
	if d.exporter.Discovered != nil && !d.exporter.Discovered() {
		d.stats.change(func(s *Stats) { s.BeforeDiscovery += cleared + spans })
		return false
	}
	d.stats.addPending(cleared + spans)
	d.stats.unsent(NotWanted, cleared)
	return spans > 0 || d.exporter.Cumulative && d.acceptCtx.Err() == nil
}

// close implements Destination.
func (d *pushDestination) close() { d.stopAccepting() }

// end implements Destination. It waits until the sender has tried to send each queued payload once, and all goroutines have
// returned. When ctx ends, it aborts sending.
func (d *pushDestination) end(ctx context.Context) {
	cancelAbort := context.AfterFunc(ctx, d.abort)
	defer cancelAbort()
	d.running.Wait()
	d.abort()
}

// settle implements Destination. It abandons the undelivered spans of running totals. (Payloads of
// deltas have their outcomes already.)
func (d *pushDestination) settle() {
	for _, c := range d.open.removeUpTo(math.MaxUint64) {
		d.stats.unsent(Shutdown, c.spans)
		c.notifyClients(d.wrapError(errClosed))
		c.state.settle()
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
	s.QueueMaxBytes, s.MaxAge = d.cfg.RetryBytes, d.cfg.RetryAge
	if born, any := d.queue.oldest(); any {
		s.OldestAge = time.Since(born)
	}
	if born, any := d.open.oldest(); any {
		s.OldestAge = max(s.OldestAge, time.Since(born))
	}
	s.IsDiscovering = d.exporter.Discovered != nil && !d.exporter.Discovered()
	wanted, _ := d.wants()
	s.Reachable = d.link.isReachable.Load()
	s.IsAccepting = wanted && !d.link.isRefusing.Load()
	return s
}

// Flushes implements Destination.
func (d *pushDestination) Flushes() []Flush { return d.stats.flushes() }
