package flush

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
)

// errNotWanted is why a payload to an agent without the endpoint was dropped.
var errNotWanted = errors.New("the agent takes no statistics")

// conclude resolves a payload by what became of an attempt, or keeps it for another.
func (f *Flusher) conclude(d delivery, a attempt) {
	p := d.payload
	f.outcomes.tried(a, f.Stats())
	f.noticeState(a.state)
	if f.reachability.payloadTried(a) {
		notify(f.rediscover)
	}
	p.tries++
	p.lastErr = a.err
	f.history.change(p.cycle.flush, func(f *Flush) {
		f.Tries++
		if a.err != nil {
			f.Said = a.err.Error()
		}
	})
	switch a.outcome {
	case accepted:
		f.backoff.succeeded(d.pauses)
		f.books.change(func(s *Stats) {
			s.Held -= p.spans
			s.Flushed += p.spans
			s.Payloads[ResultAccepted]++
		})
		f.history.resolved(p.cycle.flush, ResultAccepted)
		p.cycle.resolve(nil)
	case notYet:
		f.keep(d, a.after)
	case refused:
		f.keepRefused(p, a.refusal)
		f.giveUp(Rejected, []*payload{p})
	case notWanted:
		f.downgrade()
		f.giveUp(NotWanted, []*payload{p})
	case unknown:
		f.giveUp(Ambiguous, []*payload{p})
	}
}

// keep puts a payload back that did not arrive. While closing there is no
// second try.
func (f *Flusher) keep(d delivery, after time.Duration) {
	if f.closing.Err() != nil {
		f.giveUp(Shutdown, []*payload{d.payload})
		return
	}
	f.books.change(func(s *Stats) { s.Payloads[ResultRetried]++ })
	f.backoff.extend(time.Now(), after, d.pauses)
	f.giveUp(QueueFull, f.queue.put(d.payload))
}

// giveUp resolves payloads as unsent.
func (f *Flusher) giveUp(reason Reason, payloads []*payload) {
	for _, p := range payloads {
		f.books.unsent(reason, p.spans)
		f.books.change(func(s *Stats) { s.Payloads[reason.result()]++ })
		f.history.resolved(p.cycle.flush, reason.result())
		f.outcomes.lost(reason, p)
		p.cycle.resolve(p.failure(reason))
	}
}

// failure is what a tracer that waits for this payload is told.
func (p *payload) failure(reason Reason) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload: %s before the first try", reason)
	}
	return fmt.Errorf("send payload: %s after %d tries: %w", reason, p.tries, p.lastErr)
}

// keepRefused puts what the agent refused where a person can look at it, if the
// operator named a place. The spans are lost all the same.
func (f *Flusher) keepRefused(p *payload, refusal *dump.Refusal) {
	if f.dumps == nil || refusal == nil {
		return
	}
	refusal.Time, refusal.Agent, refusal.Spans, refusal.Body = time.Now(), f.cfg.Agent.String(), p.spans, p.body
	file, err := f.dumps.Keep(refusal)
	switch {
	case err != nil:
		f.cfg.Log.Warn("refused payload is not kept", "error", err)
	case file != "":
		f.cfg.Log.Info("refused payload is kept; look at it with: spanstatsd dump FILE", "file", file)
	}
}
