package flush

import (
	"context"
	"time"
)

// delivery is one payload on its way to a destination.
type delivery struct {
	payload *Payload
	pauses  int // how many there had been when it began
}

// answered is a delivery that has returned, and what became of it.
type answered struct {
	delivery
	Attempt
}

// send is the sender: it alone decides which payload goes when, and what an answer
// means. A delivery is a goroutine that lasts for one request, and decides nothing.
func (d *Destination) send() {
	for d.begin(); !d.finished(); d.begin() {
		d.wait(time.Now())
	}
	d.giveUp(Shutdown, d.queue.drain())
}

// begin begins the deliveries whose turn has come.
func (d *Destination) begin() {
	now := time.Now()
	if d.closing.Err() == nil {
		d.giveUp(Expired, d.queue.expire(now.Add(-d.cfg.RetryAge)))
	}
	for d.mayBegin(now) {
		p := d.queue.take()
		if p == nil {
			return
		}
		one := delivery{p, d.backoff.pauses}
		d.running.Go(func() { d.deliver(one) })
	}
}

// mayBegin says whether another delivery may. Where the last one failed, the next
// goes alone, to find out whether the destination is back. While closing nobody pauses.
func (d *Destination) mayBegin(now time.Time) bool {
	switch {
	case d.hard.Err() != nil:
		return false
	case d.closing.Err() != nil:
		return true
	}
	return d.backoff.over(now) && (d.backoff.failures == 0 || d.queue.deliveries() == 0)
}

// deliver offers the destination a payload once.
func (d *Destination) deliver(one delivery) {
	ctx, cancel := context.WithTimeout(d.hard, d.cfg.Timeout)
	defer cancel()
	d.answers <- answered{one, d.exporter.Deliver(ctx, one.payload)}
}

// finished says whether the destination is closed and nothing is left, or no time to
// send it.
func (d *Destination) finished() bool {
	if d.closing.Err() == nil || d.queue.deliveries() > 0 {
		return false
	}
	_, waits := d.queue.oldest()
	return !waits || d.hard.Err() != nil
}

// wait returns when something can have changed: an answer, a new payload, the end of
// the pause, the oldest payload's last moment, or the end. A destination
// that was asked in vain and now answers ends the pause, because what waits may be
// about to expire.
func (d *Destination) wait(now time.Time) {
	due, ends := d.due(now), d.closing.Done()
	if d.closing.Err() != nil {
		due, ends = nil, d.hard.Done()
	}
	if d.hard.Err() != nil {
		ends = nil
	}
	select {
	case a := <-d.answers:
		d.queue.returned(a.payload)
		d.conclude(a.delivery, a.Attempt)
	case <-due:
	case <-d.arrived:
	case <-d.link.returned:
		d.backoff.end()
	case <-ends:
	}
}

// due fires at the end of the pause, or at the oldest payload's last moment. It
// never does where nothing waits.
func (d *Destination) due(now time.Time) <-chan time.Time {
	born, any := d.queue.oldest()
	if !any {
		return nil
	}
	wait := born.Add(d.cfg.RetryAge).Sub(now)
	if !d.backoff.over(now) {
		wait = min(wait, d.backoff.until.Sub(now))
	}
	return time.After(wait)
}
