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

// pushDestination is a destination that statistics are sent to: it encodes sealed cycles, queues payloads
// and delivers them with retries. It shares nothing with other destinations, so none waits for another.
//
// The sealing goroutine calls accept. The sender goroutine (sender.go) decides which payload goes when, and
// what an answer means for it.
type pushDestination struct {
	exporter Exporter
	cfg      Config
	log      *outcomeLog
	stats    *statsRecorder
	link     *Link
	queue    queue
	backoff  backoff // of the sender

	sequence  uint64        // of the next payload; of the sealing goroutine
	snapshots atomic.Uint64 // begun
	open      openCycles    // of running totals

	answers chan answered // of deliveries
	arrived chan struct{} // holds a token when the queue has something new

	closing context.Context // ends when no more cycles are accepted
	stop    context.CancelFunc
	hard    context.Context // ends when nothing may be sent any more
	abort   context.CancelFunc
	running sync.WaitGroup
}

func newPush(cfg Config, x Exporter) *pushDestination {
	d := &pushDestination{
		exporter: x,
		cfg:      cfg,
		log:      newOutcomeLog(cfg.Log, x),
		stats:    newStatsRecorder(),
		link:     newLink(),
		queue:    queue{maxBytes: cfg.RetryBytes, maxInFlight: cfg.MaxPayloadBytes, inOrder: x.InOrder},
		answers:  make(chan answered),
		arrived:  make(chan struct{}, 1),
	}
	d.closing, d.stop = context.WithCancel(context.Background())
	d.hard, d.abort = context.WithCancel(context.Background())
	return d
}

// start begins to send queued payloads, until end.
func (d *pushDestination) start() {
	d.running.Go(d.send)
	if d.exporter.Watch != nil {
		d.running.Go(func() { d.exporter.Watch(d.closing, d.link) })
	}
}

// Errors that clients waiting for a cycle are told.
var (
	errClosed      = errors.New("the daemon is shutting down")
	errNotWanted   = errors.New("the destination takes no statistics")
	errUnencodable = errors.New("some groups fit in no payload; raise the payload limit")
	errEnded       = errors.New("some running totals ended before they were delivered: " +
		"nothing was added to them for an hour, or there are more than --max-aggregates")
	errNotYet = errors.New("the destination does not have its spans yet; " +
		"they are held, and are in each payload that follows")
	errTooMany = errors.New("too many cycles wait for the destination")
)

// accept encodes a cycle, whose spans are held already, and queues its payloads. It does not wait for the
// destination.
func (d *pushDestination) accept(c *Cycle) {
	flush := d.stats.beginFlush(c)
	if reason, err := d.unwelcome(); err != nil {
		d.stats.unsent(reason, c.spans)
		d.stats.changeFlush(flush, func(f *Flush) { f.Outcomes[reason.result()], f.Said = 1, err.Error() })
		c.state.fail(d.cycleError(err))
		return
	}
	began := time.Now()
	of := *c
	of.Limit = d.payloadLimit()
	var all *snapshot
	if d.exporter.Cumulative {
		all = d.beginSnapshot(&of, began)
		defer d.endPart(all, partOutcome{})
	}
	encoded := d.exporter.Push.Encode(&of, func(p *Payload) {
		p.born, p.cycle, p.snapshot, p.flush = began, c.state, all, flush
		d.enqueue(p)
	})
	took := c.merging + time.Since(began)
	d.stats.changeFlush(flush, func(f *Flush) {
		f.Unencodable, f.EncodeSeconds = encoded.Lost[Unencodable], took.Seconds()
	})
	d.stats.change(func(s *Stats) { s.Totals = encoded.Totals })
	for reason, spans := range encoded.Lost {
		d.recordUnencoded(c, all, reason, spans)
	}
}

// beginSnapshot begins the payloads of running totals, which replace those of earlier cycles in the queue.
func (d *pushDestination) beginSnapshot(c *Cycle, now time.Time) *snapshot {
	all := &snapshot{number: d.snapshots.Add(1), pending: 1}
	d.open.answerOld(now.Add(-d.cfg.RetryAge), errNotYet)
	_, isWaiting := d.open.oldest()
	c.IsSettled = !isWaiting
	if c.spans > 0 {
		d.open.add(openCycle{state: c.state, number: all.number, spans: c.spans, born: now})
	}
	for _, joined := range d.open.bound(maxWaiting) {
		joined.answer(errTooMany)
		joined.state.settle()
	}
	d.recordReplaced(d.queue.drain()...)
	return all
}

// recordUnencoded records spans that are in no payload and never will be. Totals that ended have spans of earlier
// cycles only.
func (d *pushDestination) recordUnencoded(c *Cycle, all *snapshot, reason Reason, spans uint64) {
	switch {
	case all == nil:
	case reason == Unencodable:
		spans = d.open.lose(spans, all.number)
	default:
		spans = d.open.lose(spans, all.number-1)
	}
	loseUnencoded(d.cfg.Log, d.stats, &d.exporter, c, reason, spans)
}

// loseUnencoded records spans of a cycle that an exporter could not encode, or whose totals have ended.
func loseUnencoded(
	log *slog.Logger, stats *statsRecorder, x *Exporter, c *Cycle, reason Reason, spans uint64,
) {
	if spans == 0 {
		return
	}
	stats.unsent(reason, spans)
	err := errEnded
	if reason == Unencodable {
		err = errUnencodable
	}
	log.Error("statistics are in no payload and are lost",
		"destination", x.Name, "reason", string(reason), "spans", spans, "error", err)
	c.state.fail(fmt.Errorf("send to %s: %w", x.Name, err))
}

// unwelcome returns why nothing can be sent at present, if so.
func (d *pushDestination) unwelcome() (Reason, error) {
	if d.closing.Err() != nil {
		return Shutdown, errClosed
	}
	if wanted, _ := d.wants(); !wanted {
		return NotWanted, errNotWanted
	}
	return "", nil
}

func (d *pushDestination) wants() (statistics bool, payloadBytes int) {
	if d.exporter.Wants == nil {
		return true, 0
	}
	return d.exporter.Wants()
}

// payloadLimit is our own limit or the destination's, whichever is smaller. A destination that claims to
// take less than one group is not believed.
func (d *pushDestination) payloadLimit() int {
	if _, most := d.wants(); most > 0 {
		return min(d.cfg.MaxPayloadBytes, max(most, MinPayloadBytes))
	}
	return d.cfg.MaxPayloadBytes
}

func (d *pushDestination) cycleError(err error) error {
	return fmt.Errorf("send to %s: %w", d.exporter.Name, err)
}

// enqueue queues a new payload.
func (d *pushDestination) enqueue(p *Payload) {
	if p.snapshot != nil {
		p.snapshot.add()
	} else {
		p.cycle.add()
	}
	p.sequence = d.sequence
	d.sequence++
	d.stats.madePayload(p)
	d.recordLost(QueueFull, d.queue.put(p)...)
	notify(d.arrived)
}

// recordAccepted records a payload that the destination has, except for what it left out.
func (d *pushDestination) recordAccepted(p *Payload, rejected uint64) {
	d.stats.endPayload(p, ResultAccepted)
	var err error
	if rejected > 0 {
		err = d.failure(Rejected, p)
	}
	if p.snapshot != nil {
		d.answer(p.snapshot, err)
		d.endPart(p.snapshot, partOutcome{rejected: rejected})
		return
	}
	d.stats.delivered(p.Spans, rejected)
	p.cycle.resolve(err)
}

// recordLost records payloads that are abandoned. The spans of running totals stay held, because the next
// payloads have them too. Cycles that are abandoned at shutdown are not settled: if this daemon is killed
// before it has reported them, the next one still counts them as lost.
func (d *pushDestination) recordLost(reason Reason, payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.endPayload(p, reason.result())
		err := d.failure(reason, p)
		if p.snapshot != nil {
			d.answer(p.snapshot, err)
			d.endPart(p.snapshot, partOutcome{isMissing: true, undelivered: p.Undelivered})
			continue
		}
		d.stats.unsent(reason, p.Spans)
		d.log.lost(reason, p)
		p.cycle.answer(err)
		if reason != Shutdown {
			p.cycle.settle()
		}
	}
}

// recordReplaced records payloads of running totals that a newer cycle's replace.
func (d *pushDestination) recordReplaced(payloads ...*Payload) {
	for _, p := range payloads {
		d.stats.endPayload(p, ResultSuperseded)
		d.endPart(p.snapshot, partOutcome{isMissing: true, undelivered: p.Undelivered})
	}
}

// answer tells clients that wait for the cycles of a snapshot of a failure, if there is one.
func (d *pushDestination) answer(s *snapshot, err error) {
	if err != nil {
		d.open.answer(s.number, err)
	}
}

// endPart records the outcome of one payload of a snapshot, or that all of them are made. After the last of
// them it settles the cycles that the snapshot has, unless a payload is missing.
func (d *pushDestination) endPart(s *snapshot, p partOutcome) {
	if isLast := s.end(p); !isLast {
		return
	}
	if s.isMissing {
		d.stats.delivered(d.open.keep(s.number, s.missing), s.rejected)
		return
	}
	cycles, spans := d.open.take(s.number), uint64(0)
	for i := range cycles {
		spans += cycles[i].spans
	}
	d.stats.delivered(spans, s.rejected)
	for i := range cycles {
		cycles[i].answer(nil)
		cycles[i].state.settle()
	}
}

// failure is what clients that wait for this payload are told.
func (d *pushDestination) failure(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", d.exporter.Name, reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w",
		d.exporter.Name, reason, p.tries, p.lastErr)
}

// join implements Destination.
func (d *pushDestination) join(cleared, spans uint64) (takesPart bool) {
	if d.exporter.Discovered != nil && !d.exporter.Discovered() {
		d.stats.change(func(s *Stats) { s.BeforeFound += cleared + spans })
		return false
	}
	d.stats.hold(cleared + spans)
	d.stats.unsent(NotWanted, cleared)
	return spans > 0 || d.exporter.Cumulative && d.closing.Err() == nil
}

// close implements Destination.
func (d *pushDestination) close() { d.stop() }

// end tries to send queued payloads, each once and without pauses, until ctx ends. It returns when
// every payload has its outcome and no goroutine is left.
func (d *pushDestination) end(ctx context.Context) {
	stop := context.AfterFunc(ctx, d.abort)
	defer stop()
	d.running.Wait()
	d.abort()
}

// settle gives up the spans of running totals that were not delivered, when nothing can be sent any more.
func (d *pushDestination) settle() {
	for _, c := range d.open.take(math.MaxUint64) {
		d.stats.unsent(Shutdown, c.spans)
		c.answer(d.cycleError(errClosed))
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
	if born, any := d.queue.eldest(); any {
		s.OldestAge = time.Since(born)
	}
	if born, any := d.open.oldest(); any {
		s.OldestAge = max(s.OldestAge, time.Since(born))
	}
	s.LookedFor = d.exporter.Discovered != nil && !d.exporter.Discovered()
	wanted, _ := d.wants()
	s.Reachable = d.link.answers.Load()
	s.Takes = wanted && !d.link.refuses.Load()
	return s
}

// Flushes implements Destination.
func (d *pushDestination) Flushes() []Flush { return d.stats.flushes() }
