package flush

import (
	"fmt"
	"time"
)

// conclude resolves a payload by what became of an attempt, or keeps it for another.
func (d *Destination) conclude(one delivery, a Attempt) {
	p := one.payload
	d.outcomes.tried(a, d.Stats())
	d.link.tried(a)
	p.tries++
	p.lastErr = a.Err
	d.history.change(p.flush, func(f *Flush) {
		f.Tries++
		if a.Err != nil {
			f.Said = a.Err.Error()
		}
	})
	switch a.Outcome {
	case OutcomeAccepted:
		d.backoff.succeeded(one.pauses)
		d.take(p, a.Rejected)
	case OutcomeNotYet:
		d.keep(one, a.After)
	case OutcomeRefused:
		d.giveUp(Rejected, []*Payload{p})
	case OutcomeNotWanted:
		d.giveUp(NotWanted, []*Payload{p})
	case OutcomeUnknown:
		d.giveUp(Ambiguous, []*Payload{p})
	}
}

// take resolves a payload that the destination has, but for what it left out. Of running
// totals the spans of earlier payloads arrive too that did not before.
func (d *Destination) take(p *Payload, rejected uint64) {
	spans := p.Spans
	if p.Totals != nil {
		spans = p.Totals.Arrive()
	}
	rejected = min(rejected, spans)
	d.books.change(func(s *Stats) {
		s.Held -= spans
		s.Flushed += spans - rejected
		s.Unsent[Rejected] += rejected
		s.Payloads[ResultAccepted]++
	})
	d.history.resolved(p.flush, ResultAccepted)
	var err error
	if rejected > 0 {
		err = d.failure(Rejected, p)
	}
	p.resolve(err)
}

// keep puts a payload back that did not arrive, unless a newer one says its totals too.
// While closing there is no second try.
func (d *Destination) keep(one delivery, after time.Duration) {
	if p := one.payload; p.copy != nil && !p.copy.isNewest() {
		d.backoff.extend(time.Now(), after, one.pauses)
		d.supersede([]*Payload{p})
		return
	}
	if d.closing.Err() != nil {
		d.giveUp(Shutdown, []*Payload{one.payload})
		return
	}
	d.books.change(func(s *Stats) { s.Payloads[ResultRetried]++ })
	d.backoff.extend(time.Now(), after, one.pauses)
	d.giveUp(QueueFull, d.queue.put(one.payload))
}

// giveUp resolves payloads as unsent. The spans of running totals are held all the same,
// because the next payloads say them too.
func (d *Destination) giveUp(reason Reason, payloads []*Payload) {
	for _, p := range payloads {
		if p.copy != nil {
			d.drop(p, reason.result(), d.failure(reason, p))
			continue
		}
		d.books.unsent(reason, p.Spans)
		d.books.change(func(s *Stats) { s.Payloads[reason.result()]++ })
		d.history.resolved(p.flush, reason.result())
		d.outcomes.lost(reason, p)
		p.resolve(d.failure(reason, p))
	}
}

// supersede resolves payloads in whose place newer ones are.
func (d *Destination) supersede(payloads []*Payload) {
	for _, p := range payloads {
		d.drop(p, ResultSuperseded, nil)
	}
}

// drop resolves a payload of running totals that will not be sent.
func (d *Destination) drop(p *Payload, result Result, err error) {
	d.books.change(func(s *Stats) { s.Payloads[result]++ })
	d.history.resolved(p.flush, result)
	p.copy.miss(err)
}

// failure is what a tracer that waits for this payload is told.
func (d *Destination) failure(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", d.Name(), reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w", d.Name(), reason, p.tries, p.lastErr)
}
