package flush

import (
	"context"
	"time"
)

// delivery is one payload on its way to the agent.
type delivery struct {
	payload *payload
	pauses  int // how many there had been when it began
}

// answered is a delivery that has returned, and what became of it.
type answered struct {
	delivery
	attempt
}

// send is the sender: it alone decides which payload goes when, and what an answer
// means. A delivery is a goroutine that lasts for one request, and decides nothing.
func (f *Flusher) send() {
	for f.begin(); !f.finished(); f.begin() {
		f.wait(time.Now())
	}
	f.giveUp(Shutdown, f.queue.drain())
}

// begin begins the deliveries whose turn has come.
func (f *Flusher) begin() {
	now := time.Now()
	if f.closing.Err() == nil {
		f.giveUp(Expired, f.queue.expire(now.Add(-f.cfg.RetryAge)))
	}
	for f.mayBegin(now) {
		p := f.queue.take()
		if p == nil {
			return
		}
		d := delivery{p, f.backoff.pauses}
		f.running.Go(func() { f.deliver(d) })
	}
}

// mayBegin says whether another delivery may. Where the last one failed, the next
// goes alone, to find out whether the agent is back. While closing nobody pauses.
func (f *Flusher) mayBegin(now time.Time) bool {
	switch {
	case f.hard.Err() != nil:
		return false
	case f.closing.Err() != nil:
		return true
	}
	return f.backoff.over(now) && (f.backoff.failures == 0 || f.queue.deliveries() == 0)
}

// deliver offers the agent a payload once.
func (f *Flusher) deliver(d delivery) {
	ctx, cancel := context.WithTimeout(f.hard, f.cfg.Timeout)
	defer cancel()
	f.answers <- answered{d, f.agent.post(ctx, d.payload)}
}

// finished says whether the flusher is closed and nothing is left, or no time to
// send it.
func (f *Flusher) finished() bool {
	if f.closing.Err() == nil || f.queue.deliveries() > 0 {
		return false
	}
	_, waits := f.queue.oldest()
	return !waits || f.hard.Err() != nil
}

// wait returns when something can have changed: an answer, a new payload, the end of
// the pause, the oldest payload's last moment, or Close. An agent that was asked in
// vain and now says what it wants ends the pause, because what waits may be about
// to expire.
func (f *Flusher) wait(now time.Time) {
	due, ends := f.due(now), f.closing.Done()
	if f.closing.Err() != nil {
		due, ends = nil, f.hard.Done()
	}
	if f.hard.Err() != nil {
		ends = nil
	}
	select {
	case a := <-f.answers:
		f.queue.returned(a.payload)
		f.conclude(a.delivery, a.attempt)
	case <-due:
	case <-f.arrived:
	case <-f.returned:
		f.backoff.end()
	case <-ends:
	}
}

// due fires at the end of the pause, or at the oldest payload's last moment. It
// never does where nothing waits.
func (f *Flusher) due(now time.Time) <-chan time.Time {
	born, any := f.queue.oldest()
	if !any {
		return nil
	}
	wait := born.Add(f.cfg.RetryAge).Sub(now)
	if !f.backoff.over(now) {
		wait = min(wait, f.backoff.until.Sub(now))
	}
	return time.After(wait)
}
