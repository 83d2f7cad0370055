package flush

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errNotWanted is why a payload to an agent without the endpoint was dropped.
var errNotWanted = errors.New("the agent takes no statistics")

// send is the sender: it alone offers payloads to the agent.
func (f *Flusher) send() {
	for p := f.next(); p != nil; p = f.next() {
		ctx, cancel := context.WithTimeout(f.hard, f.cfg.Timeout)
		a := f.agent.post(ctx, p)
		cancel()
		f.conclude(p, a)
	}
	f.giveUp(Shutdown, f.queue.drain())
}

// next waits for a payload whose turn has come. It returns nil when the
// flusher is closed and nothing is left, or no time to send it.
func (f *Flusher) next() *payload {
	for f.closing.Err() == nil {
		now := time.Now()
		f.giveUp(Expired, f.queue.expire(now.Add(-f.cfg.RetryAge)))
		if f.backoff.over(now) {
			if p := f.queue.take(); p != nil {
				return p
			}
		}
		f.wait(now)
	}
	if f.hard.Err() != nil {
		return nil
	}
	return f.queue.take()
}

// wait returns when something can have changed: a new payload, the end of the
// pause, the oldest payload's last moment, or Close. An agent that was asked in
// vain and now says what it wants ends the pause, because what waits may be about
// to expire.
func (f *Flusher) wait(now time.Time) {
	var due <-chan time.Time
	if born, any := f.queue.oldest(); any {
		wait := born.Add(f.cfg.RetryAge).Sub(now)
		if !f.backoff.over(now) {
			wait = min(wait, f.backoff.until.Sub(now))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-f.arrived:
	case <-f.returned:
		f.backoff.reset()
	case <-f.closing.Done():
	}
}

// conclude resolves a payload by what became of an attempt, or keeps it for another.
func (f *Flusher) conclude(p *payload, a attempt) {
	f.outcomes.tried(a, f.Stats())
	f.noticeState(a.state)
	if f.reachability.payloadTried(!a.silent) {
		notify(f.rediscover)
	}
	p.tries++
	p.lastErr = a.err
	f.history.tried(p.cycle.flush, a.err)
	switch a.outcome {
	case accepted:
		f.backoff.reset()
		f.books.flushed(p.spans)
		f.history.resolved(p.cycle.flush, ResultAccepted)
		p.cycle.resolve(nil)
	case notYet:
		f.keep(p, a.after)
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
func (f *Flusher) keep(p *payload, after time.Duration) {
	if f.closing.Err() != nil {
		f.giveUp(Shutdown, []*payload{p})
		return
	}
	f.books.result(ResultRetried)
	f.backoff.extend(time.Now(), after)
	f.giveUp(QueueFull, f.queue.put(p))
}

// giveUp resolves payloads as unsent.
func (f *Flusher) giveUp(reason Reason, payloads []*payload) {
	for _, p := range payloads {
		f.books.unsent(reason, p.spans)
		f.books.result(reason.result())
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
