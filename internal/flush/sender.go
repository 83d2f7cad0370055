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
		f.deliver(p)
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
		f.rest(now)
	}
	if f.hard.Err() != nil {
		return nil
	}
	return f.queue.take()
}

// rest waits until something can have changed: a new payload, the end of the
// pause, the oldest payload's last moment, or Close. An agent that was asked in
// vain and now says what it wants ends the pause: what waits may be about to
// expire.
func (f *Flusher) rest(now time.Time) {
	var ring <-chan time.Time
	if born, any := f.queue.oldest(); any {
		wait := born.Add(f.cfg.RetryAge).Sub(now)
		if !f.backoff.over(now) {
			wait = min(wait, f.backoff.until.Sub(now))
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		ring = timer.C
	}
	select {
	case <-ring:
	case <-f.arrived:
	case <-f.returned:
		f.backoff.reset()
	case <-f.closing.Done():
	}
}

// deliver offers one payload and settles it, or keeps it for another try.
func (f *Flusher) deliver(p *payload) {
	ctx, cancel := context.WithTimeout(f.hard, f.cfg.Timeout)
	a := f.agent.post(ctx, p)
	cancel()
	f.link.observe(a, f.Stats())
	f.noticeState(a.state)
	if f.contact.heard(!a.silent) {
		notify(f.rediscover)
	}
	p.attempts++
	p.lastErr = a.err
	f.history.tried(p.shipment.flush, a.err)
	switch a.verdict {
	case accepted:
		f.backoff.reset()
		f.books.flushed(p.spans)
		f.history.settled(p.shipment.flush, ResultAccepted)
		p.shipment.settle(nil)
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

// giveUp settles payloads as unsent.
func (f *Flusher) giveUp(reason Reason, payloads []*payload) {
	for _, p := range payloads {
		f.books.unsent(reason, p.spans)
		f.books.result(reason.result())
		f.history.settled(p.shipment.flush, reason.result())
		f.link.lose(reason, p)
		p.shipment.settle(p.failure(reason))
	}
}

// failure is what a tracer that waits for this payload is told.
func (p *payload) failure(reason Reason) error {
	if p.lastErr == nil {
		return fmt.Errorf("send payload: %s before the first try", reason)
	}
	return fmt.Errorf("send payload: %s after %d tries: %w", reason, p.attempts, p.lastErr)
}
