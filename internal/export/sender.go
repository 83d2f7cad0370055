package export

import (
	"context"
	"math/rand/v2"
	"time"
)

// delivery is one payload that is being sent.
type delivery struct {
	payload *Payload
	cycles  []*cycleState // whose spans it has
	pauses  int           // how many there had been when it began
}

// answered is a delivery that has returned.
type answered struct {
	delivery
	Attempt
}

// phase is how far a sender has come. send reads it once per turn: what is decided by a phase and what is
// waited for must agree, or the end of the phase could go by between them.
type phase int

const (
	accepting phase = iota // until close
	draining               // until nothing is left, or abort
	aborted
)

func (d *pushDestination) phase() phase {
	switch {
	case d.hard.Err() != nil:
		return aborted
	case d.closing.Err() != nil:
		return draining
	}
	return accepting
}

// send is the sender goroutine. A delivery has a goroutine of its own, which makes one request and decides
// nothing.
func (d *pushDestination) send() {
	for {
		now, phase := time.Now(), d.phase()
		d.begin(now, phase)
		if d.isFinished(phase) {
			break
		}
		d.wait(now, phase)
	}
	d.recordLost(Shutdown, d.queue.drain()...)
}

// begin begins the deliveries whose turn has come.
func (d *pushDestination) begin(now time.Time, in phase) {
	if in == accepting {
		d.recordLost(Expired, d.queue.expire(now.Add(-d.cfg.RetryAge))...)
	}
	for d.mayBegin(now, in) {
		p := d.queue.take()
		if p == nil {
			return
		}
		one := delivery{payload: p, pauses: d.backoff.pauses, cycles: []*cycleState{p.cycle}}
		if p.snapshot != nil {
			one.cycles = d.open.states(p.snapshot.number)
		}
		for _, c := range one.cycles {
			c.beginSend()
		}
		d.running.Go(func() { d.deliver(one) })
	}
}

// mayBegin reports whether another delivery may begin. After a failure the next one goes alone, to find out
// whether the destination is back. While draining there are no pauses.
func (d *pushDestination) mayBegin(now time.Time, in phase) bool {
	switch in {
	case aborted:
		return false
	case draining:
		return true
	}
	return d.backoff.over(now) && (d.backoff.failures == 0 || d.queue.deliveries() == 0)
}

// deliver offers the destination a payload once.
func (d *pushDestination) deliver(one delivery) {
	ctx, cancel := context.WithTimeout(d.hard, d.cfg.Timeout)
	defer cancel()
	d.answers <- answered{one, d.exporter.Push.Deliver(ctx, one.payload)}
}

// isFinished reports whether the destination is closed and nothing is left, or no time to send it.
func (d *pushDestination) isFinished(in phase) bool {
	if in == accepting || d.queue.deliveries() > 0 {
		return false
	}
	_, waits := d.queue.oldest()
	return !waits || in == aborted
}

// wait returns when something can have changed: an answer, a new payload, the end of the pause, the oldest
// payload's last moment, or the end of the phase. A destination that answers a question after it had not
// ends the pause, because queued payloads may be about to expire.
func (d *pushDestination) wait(now time.Time, in phase) {
	var due <-chan time.Time
	var ends <-chan struct{} // never, once aborted: only answers are left then
	switch in {
	case accepting:
		due, ends = d.due(now), d.closing.Done()
	case draining:
		ends = d.hard.Done()
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

// due fires at the end of the pause, or at the oldest payload's last moment. It never does if nothing is
// queued.
func (d *pushDestination) due(now time.Time) <-chan time.Time {
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

// conclude records the result of an attempt, and settles the payload or keeps it for a retry.
func (d *pushDestination) conclude(one delivery, a Attempt) {
	p := one.payload
	for _, c := range one.cycles {
		c.endSend(a.Outcome == OutcomeAccepted || a.Outcome == OutcomeUnknown)
	}
	if a.Outcome == OutcomeUnknown && p.snapshot != nil {
		a.Outcome = OutcomeNotYet // a second copy of a total changes nothing
	}
	waiting, _ := d.queue.size()
	d.log.tried(a, waiting, d.stats.read().Held)
	d.link.tried(a)
	p.tries++
	p.lastErr = a.Err
	d.stats.tried(p, a)
	switch a.Outcome {
	case OutcomeAccepted:
		d.backoff.succeeded(one.pauses)
		d.recordAccepted(p, a.Rejected)
	case OutcomeNotYet:
		d.retry(one, a.After)
	case OutcomeRefused:
		d.recordLost(Rejected, p)
	case OutcomeNotWanted:
		d.recordLost(NotWanted, p)
	case OutcomeUnknown:
		d.recordLost(Ambiguous, p)
	}
}

// retry queues a payload again that was not delivered, unless a newer snapshot has its totals too. While
// draining there is no second try.
func (d *pushDestination) retry(one delivery, after time.Duration) {
	p := one.payload
	isReplaced := p.snapshot != nil && p.snapshot.number < d.snapshots.Load()
	if d.closing.Err() != nil && !isReplaced {
		d.recordLost(Shutdown, p)
		return
	}
	d.backoff.extend(time.Now(), after, one.pauses)
	if isReplaced {
		d.recordReplaced(p)
		return
	}
	d.stats.change(func(s *Stats) { s.Payloads[ResultRetried]++ })
	d.recordLost(QueueFull, d.queue.put(p)...)
}

const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 30 * time.Second
)

// backoff is the pause after failures. It belongs to the connection to a destination, not to a payload:
// when one payload can't be delivered, the next can't be either.
//
// Several deliveries begin between two pauses, and when the destination becomes unavailable all of them
// fail. That counts as one failure: a delivery that began before the present pause says nothing about what
// comes after it, except how long the destination asks us to wait.
type backoff struct {
	until    time.Time
	failures int // in a row
	pauses   int // so far; a delivery remembers how many there were when it began
}

// over reports whether the pause has ended.
func (b *backoff) over(now time.Time) bool { return !now.Before(b.until) }

// extend begins a pause: twice as long with each failure in a row, less up to half at random, so that many
// daemons do not return to one destination at the same time; never shorter than the destination asked for.
func (b *backoff) extend(now time.Time, atLeast time.Duration, began int) {
	if began != b.pauses {
		if until := now.Add(atLeast); until.After(b.until) && atLeast > 0 {
			b.until = until
		}
		return
	}
	pause := longestPause
	if b.failures < 6 { // 500 ms doubled six times is past the longest
		pause = shortestPause << b.failures
	}
	b.failures++
	b.pauses++
	pause -= time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause, atLeast))
}

// succeeded records that the destination accepted a delivery that began after so many pauses.
func (b *backoff) succeeded(began int) {
	if began == b.pauses {
		b.end()
	}
}

// end ends the pause and resets the failures.
func (b *backoff) end() { b.until, b.failures = time.Time{}, 0 }
