package flush

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/dump"
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
		f.backoff = backoff{}
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
	f.history.change(p.cycle.flush, func(f *Flush) {
		f.Tries++
		if a.err != nil {
			f.Said = a.err.Error()
		}
	})
	switch a.outcome {
	case accepted:
		f.backoff = backoff{}
		f.books.change(func(s *Stats) {
			s.Held -= p.spans
			s.Flushed += p.spans
			s.Payloads[ResultAccepted]++
		})
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
	f.books.change(func(s *Stats) { s.Payloads[ResultRetried]++ })
	f.backoff.extend(time.Now(), after)
	f.giveUp(QueueFull, f.queue.put(p))
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

const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 30 * time.Second
)

// backoff is the pause between failures. It belongs to the way to the agent,
// not to a payload: when one cannot get through, the next cannot either.
type backoff struct {
	until    time.Time
	failures int
}

// over says whether the pause has ended.
func (b *backoff) over(now time.Time) bool { return !now.Before(b.until) }

// extend begins a pause: twice as long with each failure in a row, less up to
// half at random, so that many daemons do not come back to one agent together;
// and never shorter than the agent asked for.
func (b *backoff) extend(now time.Time, atLeast time.Duration) {
	pause := longestPause
	if b.failures < 6 { // 500 ms doubled six times is past the longest
		pause = shortestPause << b.failures
	}
	b.failures++
	pause -= time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause, atLeast))
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
