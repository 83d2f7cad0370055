package flush

import "fmt"

// settler notes what becomes of payloads for good: in the books, the history and the log,
// and towards who waits for them.
type settler struct {
	name     string // of the destination
	books    *books
	history  history
	outcomes *outcomeLog
}

// take settles a payload that the destination has, but for what it left out. Of running
// totals the spans of earlier payloads arrive too that did not before.
func (s *settler) take(p *Payload, rejected uint64) {
	spans := p.Spans
	if p.Totals != nil {
		spans = p.Totals.Arrive()
	}
	rejected = min(rejected, spans)
	s.books.change(func(b *Stats) {
		b.Held -= spans
		b.Flushed += spans - rejected
		b.Unsent[Rejected] += rejected
	})
	s.count(p, ResultAccepted)
	var err error
	if rejected > 0 {
		err = s.failure(Rejected, p)
	}
	p.resolve(err)
}

// giveUp settles payloads as unsent. The spans of running totals are held all the same,
// because the next payloads say them too. What is given up because the daemon ends stays open to
// the next one, which finds it so where this one is killed before it has said what it gave up.
func (s *settler) giveUp(reason Reason, payloads ...*Payload) {
	for _, p := range payloads {
		s.count(p, reason.result())
		if p.copy != nil {
			p.copy.miss(s.failure(reason, p))
			continue
		}
		s.books.unsent(reason, p.Spans)
		s.outcomes.lost(reason, p)
		if err := s.failure(reason, p); reason == Shutdown {
			p.cycle.answer(err)
		} else {
			p.resolve(err)
		}
	}
}

// supersede settles payloads in whose place newer ones are.
func (s *settler) supersede(payloads ...*Payload) {
	for _, p := range payloads {
		s.count(p, ResultSuperseded)
		p.copy.miss(nil)
	}
}

// count notes a payload's final result.
func (s *settler) count(p *Payload, result Result) {
	s.books.change(func(b *Stats) { b.Payloads[result]++ })
	s.history.resolved(p.flush, result)
}

// failure is what a tracer that waits for this payload is told.
func (s *settler) failure(reason Reason, p *Payload) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload to %s: %s before the first try", s.name, reason)
	}
	return fmt.Errorf("send payload to %s: %s after %d tries: %w", s.name, reason, p.tries, p.lastErr)
}
