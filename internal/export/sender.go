package export

import (
	"context"
	"math/rand/v2"
	"time"
)

// delivery is an attempt to deliver a payload.
type delivery struct {
	payload *Payload
	cycles  []*cycleState // cycles whose spans the payload contains
	pauses  int           // backoff.pauses when it began
}

// finished is a delivery with its result.
type finished struct {
	delivery
	Attempt
}

// phase is the state of a sender. send determines it once per iteration, because all decisions of
// an iteration, and the events that it waits for, must refer to the same phase.
type phase int

const (
	accepting phase = iota // until close
	draining               // until nothing is left, or abort
	aborted
)

// phase returns the current phase.
func (d *pushDestination) phase() phase {
	switch {
	case d.sendCtx.Err() != nil:
		return aborted
	case d.acceptCtx.Err() != nil:
		return draining
	}
	return accepting
}

// send is the sender goroutine, which makes all decisions. Each delivery has another goroutine,
// which makes one request.
func (d *pushDestination) send() {
	for {
		now, phase := time.Now(), d.phase()
		d.startDeliveries(now, phase)
		if d.isFinished(phase) {
			break
		}
		d.wait(now, phase)
	}
	d.recordLost(Shutdown, d.queue.drain()...)
}

// startDeliveries starts deliveries as far as limits and backoff permit. It first removes expired
// payloads.
func (d *pushDestination) startDeliveries(now time.Time, in phase) {
	if in == accepting {
		d.recordLost(Expired, d.queue.expire(now.Add(-d.cfg.RetryAge))...)
	}
	for d.mayStart(now, in) {
		p := d.queue.take()
		if p == nil {
			return
		}
		next := delivery{payload: p, pauses: d.backoff.pauses, cycles: []*cycleState{p.cycle}}
		if p.snapshot != nil {
			next.cycles = d.open.statesUpTo(p.snapshot.number)
		}
		for _, c := range next.cycles {
			c.beginSend()
		}
		d.running.Go(func() { d.deliver(next) })
	}
}

// mayStart reports whether another delivery can start now. After a failure, deliveries start one at
// a time until the destination is back. While draining there are no pauses.
func (d *pushDestination) mayStart(now time.Time, in phase) bool {
	switch in {
	case aborted:
		return false
	case draining:
		return true
	}
	return d.backoff.over(now) && (d.backoff.failures == 0 || d.queue.deliveries() == 0)
}

// deliver makes one attempt to deliver a payload, and passes the result to the sender.
func (d *pushDestination) deliver(del delivery) {
	ctx, cancel := context.WithTimeout(d.sendCtx, d.cfg.Timeout)
	defer cancel()
	d.finished <- finished{del, d.exporter.Push.Deliver(ctx, del.payload)}
}

// isFinished reports whether the sender can end: the destination is closed, and either nothing is
// left to send or sending was aborted.
func (d *pushDestination) isFinished(in phase) bool {
	if in == accepting || d.queue.deliveries() > 0 {
		return false
	}
	_, waits := d.queue.oldestWaiting()
	return !waits || in == aborted
}

// wait waits for the next event: a result, a new payload, the end of the pause, the expiry of a
// payload, or the end of the phase. If a silent destination responds again, the pause ends, because
// queued payloads may be about to expire.
func (d *pushDestination) wait(now time.Time, in phase) {
	var due <-chan time.Time
	var phaseEnd <-chan struct{} // nil after an abort: only results can arrive then
	switch in {
	case accepting:
		due, phaseEnd = d.due(now), d.acceptCtx.Done()
	case draining:
		phaseEnd = d.sendCtx.Done()
	}
	select {
	case a := <-d.finished:
		d.queue.endDelivery(a.payload)
		d.handleResult(a.delivery, a.Attempt)
	case <-due:
	case <-d.queued:
	case <-d.link.returned:
		d.backoff.end()
	case <-phaseEnd:
	}
}

// due returns a channel that receives when the pause ends or the oldest waiting payload expires,
// whichever is first. It returns nil if nothing is waiting.
func (d *pushDestination) due(now time.Time) <-chan time.Time {
	born, any := d.queue.oldestWaiting()
	if !any {
		return nil
	}
	wait := born.Add(d.cfg.RetryAge).Sub(now)
	if !d.backoff.over(now) {
		wait = min(wait, d.backoff.until.Sub(now))
	}
	return time.After(wait)
}

// handleResult records the result of an attempt, then settles the payload or queues it for a retry.
func (d *pushDestination) handleResult(del delivery, a Attempt) {
	p := del.payload
	for _, c := range del.cycles {
		c.endSend(a.Outcome == OutcomeAccepted || a.Outcome == OutcomeUnknown)
	}
	if a.Outcome == OutcomeUnknown && p.snapshot != nil {
		a.Outcome = OutcomeNotYet // a running total can safely be sent twice
	}
	waiting, _ := d.queue.size()
	d.log.logAttempt(a, waiting, d.stats.read().Held)
	d.link.recordAttempt(a)
	p.tries++
	p.lastErr = a.Err
	d.stats.recordAttempt(p, a)
	switch a.Outcome {
	case OutcomeAccepted:
		d.backoff.succeeded(del.pauses)
		d.recordAccepted(p, a.Rejected)
	case OutcomeNotYet:
		d.retry(del, a.After)
	case OutcomeRefused:
		d.recordLost(Rejected, p)
	case OutcomeNotWanted:
		d.recordLost(NotWanted, p)
	case OutcomeUnknown:
		d.recordLost(Ambiguous, p)
	}
}

// retry queues an undelivered payload again, unless a newer snapshot contains its totals. While
// draining there are no retries.
func (d *pushDestination) retry(del delivery, after time.Duration) {
	p := del.payload
	isReplaced := p.snapshot != nil && p.snapshot.number < d.snapshots.Load()
	if d.acceptCtx.Err() != nil && !isReplaced {
		d.recordLost(Shutdown, p)
		return
	}
	d.backoff.extend(time.Now(), after, del.pauses)
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

// backoff determines the pause after failures. There is one per destination, not per payload: if one
// payload can't be delivered, the next can't be either.
//
// Several deliveries can start between two pauses, and all of them fail when the destination becomes
// unavailable. They count as one failure: of a delivery that started before the current pause, only the
// delay that the destination requests is used.
type backoff struct {
	until    time.Time
	failures int // consecutive failures
	pauses   int // number of pauses so far
}

// over reports whether the pause has ended.
func (b *backoff) over(now time.Time) bool { return !now.Before(b.until) }

// extend starts a pause. It doubles with each consecutive failure, minus up to half at random, so
// that many daemons do not return to one destination simultaneously, and is at least atLeast. began
// is the number of pauses when the failed delivery started.
func (b *backoff) extend(now time.Time, atLeast time.Duration, began int) {
	if began != b.pauses {
		if until := now.Add(atLeast); until.After(b.until) && atLeast > 0 {
			b.until = until
		}
		return
	}
	pause := longestPause
	if b.failures < 6 { // 500 ms doubled six times exceeds longestPause
		pause = shortestPause << b.failures
	}
	b.failures++
	b.pauses++
	pause -= time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause, atLeast))
}

// succeeded ends the pause after a successful delivery, unless another pause has begun since the
// delivery started.
func (b *backoff) succeeded(began int) {
	if began == b.pauses {
		b.end()
	}
}

// end ends the pause and resets the failures.
func (b *backoff) end() { b.until, b.failures = time.Time{}, 0 }
