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
		d.take(p, min(a.Rejected, p.Spans))
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

// take resolves a payload that the destination has, but for what it left out.
func (d *Destination) take(p *Payload, rejected uint64) {
	d.books.change(func(s *Stats) {
		s.Held -= p.Spans
		s.Flushed += p.Spans - rejected
		s.Unsent[Rejected] += rejected
		s.Payloads[ResultAccepted]++
	})
	d.history.resolved(p.flush, ResultAccepted)
	if rejected > 0 {
		p.cycle.resolve(d.failure(Rejected, p))
		return
	}
	p.cycle.resolve(nil)
}

// keep puts a payload back that did not arrive. While closing there is no
// second try.
func (d *Destination) keep(one delivery, after time.Duration) {
	if d.closing.Err() != nil {
		d.giveUp(Shutdown, []*Payload{one.payload})
		return
	}
	d.books.change(func(s *Stats) { s.Payloads[ResultRetried]++ })
	d.backoff.extend(time.Now(), after, one.pauses)
	d.giveUp(QueueFull, d.queue.put(one.payload))
}

// giveUp resolves payloads as unsent.
func (d *Destination) giveUp(reason Reason, payloads []*Payload) {
	for _, p := range payloads {
		d.books.unsent(reason, p.Spans)
		d.books.change(func(s *Stats) { s.Payloads[reason.result()]++ })
		d.history.resolved(p.flush, reason.result())
		d.outcomes.lost(reason, p)
		p.cycle.resolve(d.failure(reason, p))
	}
}

// failure is what a tracer that waits for this payload is told.
func (d *Destination) failure(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", d.Name(), reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w", d.Name(), reason, p.tries, p.lastErr)
}
