package flush

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// Destination is one place that statistics are sent to: an exporter, and what waits
// for it. It shares nothing with another, so that none waits for another.
type Destination struct {
	*sender
	sendsTotals bool
	copies      copies // of running totals
	sequence    uint64 // of the next payload; whoever accepts counts it
}

func newDestination(cfg Config, x Exporter) *Destination {
	d := &Destination{sender: newSender(cfg, x), sendsTotals: SendsTotals(x)}
	d.copies.retryAge = cfg.RetryAge
	d.start()
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
	errEnded       = errors.New("some running totals ended before they arrived: " +
		"nothing was added to them for an hour, or there are more than --max-aggregates")
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
	if d.sendsTotals {
		totals = d.copies.begin(c.delivery, c.spans, began)
		defer totals.resolve(nil)
		d.supersede(d.queue.drain()...)
	}
	if d.unread != nil {
		d.unread.add(c, d.cfg.RetryAge)
	}
	encoded := d.exporter.Encode(c.Sealed, c.rows, d.payloadLimit(), func(p *Payload) {
		p.born, p.cycle, p.copy, p.flush = began, c.delivery, totals, flush
		d.enqueue(p)
	})
	took := c.merging + time.Since(began)
	d.history.change(flush, func(f *Flush) {
		f.Unencodable, f.EncodeSeconds = encoded.Lost[Unencodable], took.Seconds()
	})
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
	d.cfg.Log.Error("statistics are in no payload and are lost",
		"destination", d.name, "reason", string(reason), "spans", spans, "error", err)
	c.delivery.fail(d.cycleError(err))
}

// unwelcome says why nothing can be sent at present, if so.
func (d *Destination) unwelcome() (Reason, error) {
	if d.closing.Err() != nil {
		return Shutdown, errClosed
	}
	if wanted, _ := whatItWants(d.exporter); !wanted {
		return NotWanted, errNotWanted
	}
	return "", nil
}

// payloadLimit is our own bound or the destination's, whichever is smaller. One that
// claims to take less than one group is not believed.
func (d *Destination) payloadLimit() int {
	if _, said := whatItWants(d.exporter); said > 0 {
		return min(d.cfg.MaxPayloadBytes, max(said, MinPayloadBytes))
	}
	return d.cfg.MaxPayloadBytes
}

// cycleError is what a tracer that waits for the cycle is told.
func (d *Destination) cycleError(err error) error { return fmt.Errorf("send to %s: %w", d.Name(), err) }

// enqueue makes a payload one of those that wait.
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
	d.sender.enqueue(p)
}

// settle gives up the spans of running totals that no payload has brought, and settles what
// nobody has read, when nothing can be sent any more. end comes before.
func (d *Destination) settle() {
	if d.unread != nil {
		d.unread.copies.end(nil)
	}
	if d.sendsTotals {
		d.books.unsent(Shutdown, d.books.look().Held)
		d.copies.end(d.cycleError(errClosed))
	}
}

// takesIdle says whether a cycle without spans is encoded.
func (d *Destination) takesIdle() bool { return d.sendsTotals && d.closing.Err() == nil }

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
	s.LookedFor = !hasJoined(d.exporter)
	wanted, _ := whatItWants(d.exporter)
	s.Reachable = d.link.answers.Load()
	s.Takes = wanted && !d.link.refuses.Load()
	return s
}

// Flushes are the last ones, the newest first. A cycle without spans is none.
func (d *Destination) Flushes() []Flush { return d.history.look() }
