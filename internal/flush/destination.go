package flush

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Destination is one place that statistics are sent to: an exporter, and what waits
// for it. It shares nothing with another, so that none waits for another.
type Destination struct {
	exporter Exporter
	cfg      Config
	log      *slog.Logger

	// Of the sender only.
	backoff  backoff
	outcomes outcomeLog

	link     *Link
	queue    queue
	copies   copies // of running totals
	books    *books
	history  history
	sequence uint64 // of the next payload; whoever accepts counts it

	answers chan answered // of deliveries, to the sender
	arrived chan struct{} // holds a token when the queue has something new

	closing context.Context // ends when no more is accepted
	close   context.CancelFunc
	hard    context.Context // ends when nothing may be sent any more
	abort   context.CancelFunc
	running sync.WaitGroup
}

// start runs a destination. end ends it.
func start(cfg Config, exporter Exporter) *Destination {
	d := &Destination{
		exporter: exporter, cfg: cfg, log: cfg.Log,
		outcomes: outcomeLog{log: cfg.Log, name: exporter.Name(), totals: exporter.SendsTotals(), began: map[trouble]time.Time{}},
		link:     newLink(),
		queue:    queue{maxBytes: cfg.RetryBytes, maxUnderWay: cfg.MaxPayloadBytes, inOrder: exporter.InOrder()},
		copies:   copies{retryAge: cfg.RetryAge},
		books:    newBooks(),
		answers:  make(chan answered),
		arrived:  make(chan struct{}, 1),
	}
	d.closing, d.close = context.WithCancel(context.Background())
	d.hard, d.abort = context.WithCancel(context.Background())
	d.running.Go(d.send)
	d.running.Go(func() { exporter.Watch(d.closing, d.link) })
	return d
}

// cycle is a sealed cycle while it is encoded: its rows, and how long it took to merge
// them. The rows are gone when Accept returns.
type cycle struct {
	*aggregate.Sealed
	rows     []Row
	spans    uint64
	merging  time.Duration
	delivery *cycleDelivery
}

var (
	// errClosed is why a cycle sealed after Close was not sent.
	errClosed      = errors.New("the daemon is shutting down")
	errNotWanted   = errors.New("the destination takes no statistics")
	errUnencodable = errors.New("some groups fit in no payload; raise the payload limit")
	errEnded       = errors.New("some running totals ended before they arrived: nothing was added to them for an hour, or there are more than --max-aggregates")
)

// accept encodes a cycle, whose spans the destination holds already, and leaves its
// payloads to the sender. It never waits for the destination.
func (d *Destination) accept(c *cycle) {
	flush := d.history.begin(c.Sealed, c.spans)
	if reason, err := d.unwelcome(); err != nil {
		d.books.unsent(reason, c.spans)
		d.history.change(flush, func(f *Flush) { f.Outcomes[reason.result()], f.Said = 1, err.Error() })
		c.delivery.fail(d.cycleError(err))
		return
	}
	began := time.Now()
	var totals *totalsCopy
	if d.exporter.SendsTotals() {
		totals = d.copies.begin(c.delivery, c.spans, began)
		defer totals.resolve(nil)
		d.supersede(d.queue.drain())
	}
	encoded := d.exporter.Encode(c.Sealed, c.rows, d.payloadLimit(), func(p *Payload) {
		p.born, p.cycle, p.copy, p.flush = began, c.delivery, totals, flush
		d.enqueue(p)
	})
	took := c.merging + time.Since(began)
	d.history.change(flush, func(f *Flush) { f.Unencodable, f.EncodeSeconds = encoded.Lost[Unencodable], took.Seconds() })
	d.books.change(func(s *Stats) { s.Totals = encoded.Totals })
	for reason, spans := range encoded.Lost {
		if spans > 0 {
			d.lose(c, reason, spans)
		}
	}
}

// lose notes spans of which there will be no payload.
func (d *Destination) lose(c *cycle, reason Reason, spans uint64) {
	d.books.unsent(reason, spans)
	err := errEnded
	if reason == Unencodable {
		err = errUnencodable
	}
	d.log.Error("statistics are in no payload and are lost", "destination", d.Name(), "reason", string(reason), "spans", spans, "error", err)
	c.delivery.fail(d.cycleError(err))
}

// unwelcome says why nothing can be sent at present, if so.
func (d *Destination) unwelcome() (Reason, error) {
	if d.closing.Err() != nil {
		return Shutdown, errClosed
	}
	if wanted, _ := d.exporter.Wants(); !wanted {
		return NotWanted, errNotWanted
	}
	return "", nil
}

// payloadLimit is our own bound or the destination's, whichever is smaller. One that
// claims to take less than one group is not believed.
func (d *Destination) payloadLimit() int {
	if _, said := d.exporter.Wants(); said > 0 {
		return min(d.cfg.MaxPayloadBytes, max(said, MinPayloadBytes))
	}
	return d.cfg.MaxPayloadBytes
}

// cycleError is what a tracer that waits for the cycle is told.
func (d *Destination) cycleError(err error) error { return fmt.Errorf("send to %s: %w", d.Name(), err) }

// enqueue hands a payload to the sender.
func (d *Destination) enqueue(p *Payload) {
	p.wait()
	p.sequence = d.sequence
	d.sequence++
	d.books.change(func(s *Stats) { s.PayloadBytes.observe(float64(len(p.Body))) })
	d.history.change(p.flush, func(f *Flush) {
		f.Payloads++
		f.Pending++
		f.Bytes += len(p.Body)
	})
	d.giveUp(QueueFull, d.queue.put(p))
	notify(d.arrived)
}

// end tries to send what still waits, each payload once and without pauses, until ctx
// ends. What is left then is unsent for Shutdown. It returns when every payload has its
// outcome and no goroutine is left. close comes before.
func (d *Destination) end(ctx context.Context) {
	stop := context.AfterFunc(ctx, d.abort)
	defer stop()
	d.running.Wait()
	d.abort()
}

// settle gives up the spans of running totals that no payload has brought, when nothing can
// be sent any more. end comes before.
func (d *Destination) settle() {
	if d.exporter.SendsTotals() {
		d.books.unsent(Shutdown, d.books.look().Held)
		d.copies.end(d.cycleError(errClosed))
	}
}

// takesIdle says whether a cycle without spans is encoded.
func (d *Destination) takesIdle() bool { return d.exporter.SendsTotals() && d.closing.Err() == nil }

// Name is what the destination is called in metrics, the log and status.
func (d *Destination) Name() string { return d.exporter.Name() }

// URL is where it is, for a person.
func (d *Destination) URL() string { return d.exporter.URL() }

// Stats is one consistent look at the books.
func (d *Destination) Stats() Stats {
	s := d.books.look()
	s.QueuePayloads, s.QueueBytes = d.queue.size()
	s.QueueMaxBytes, s.MaxAge = d.cfg.RetryBytes, d.cfg.RetryAge
	if born, any := d.queue.eldest(); any {
		s.OldestAge = time.Since(born)
	}
	if born, any := d.copies.oldest(); any {
		s.OldestAge = max(s.OldestAge, time.Since(born))
	}
	wanted, _ := d.exporter.Wants()
	s.Reachable = d.link.answers.Load()
	s.Takes = wanted && !d.link.refuses.Load()
	return s
}
