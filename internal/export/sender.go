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
	pauses  int           // value of backoff.pauses when the delivery started
}

// finishedDelivery is a delivery with its result.
type finishedDelivery struct {
	delivery
	Attempt
}

// phase is the state of a sender. send determines it once per iteration, because all decisions of
// an iteration, and the events that it waits for, must refer to the same phase.
type phase int

const (
	accepting phase = iota // cycles are accepted; ends with close
	draining               // each queued payload is sent once; ends when none is left, or with abort
	aborted                // nothing is sent any more
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

// send runs the sender until all payloads have an outcome. The sender makes all decisions. Each
// delivery runs in a goroutine of its own, which makes one request and returns the result to the
// sender.
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

// startDeliveries abandons expired payloads, then starts as many deliveries as limits and backoff
// permit. While draining, no payload expires, because each one is sent once more.
func (d *pushDestination) startDeliveries(now time.Time, current phase) {
	if current == accepting {
		d.recordLost(Expired, d.queue.expire(now.Add(-d.cfg.RetryAge))...)
	}
	for d.mayStart(now, current) {
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

// mayStart reports whether another delivery can start now. While draining there are no pauses. After
// a failure, only one delivery at a time can start, until one succeeds.
func (d *pushDestination) mayStart(now time.Time, current phase) bool {
	switch current {
	case aborted:
		return false
	case draining:
		return true
	}
	hasFailed, isIdle := d.backoff.failures > 0, d.queue.deliveries() == 0
	return d.backoff.hasEnded(now) && (!hasFailed || isIdle)
}

// deliver makes one attempt to deliver a payload, and passes the result to the sender.
func (d *pushDestination) deliver(del delivery) {
	ctx, cancel := context.WithTimeout(d.sendCtx, d.cfg.Timeout)
	defer cancel()
	d.finished <- finishedDelivery{del, d.exporter.Push.Deliver(ctx, del.payload)}
}

// isFinished reports whether the sender can end: the destination is closed, no payload is in flight,
// and either none is waiting or sending was aborted.
func (d *pushDestination) isFinished(current phase) bool {
	if current == accepting || d.queue.deliveries() > 0 {
		return false
	}
	_, isWaiting := d.queue.oldestWaiting()
	return !isWaiting || current == aborted
}

// wait waits for the next event: a result, a new payload, the end of the pause, the expiry of a
// payload, or the end of the phase. If Exporter.Watch reports that a silent destination answers
// again, the pause ends, because queued payloads may be about to expire.
func (d *pushDestination) wait(now time.Time, current phase) {
	var due <-chan time.Time     // nil unless accepting: there are neither pauses nor expiry
	var phaseEnd <-chan struct{} // nil after an abort: it is the last phase
	switch current {
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
// whichever is first. It returns nil if no payload is waiting.
func (d *pushDestination) due(now time.Time) <-chan time.Time {
	born, isWaiting := d.queue.oldestWaiting()
	if !isWaiting {
		return nil
	}
	wait := born.Add(d.cfg.RetryAge).Sub(now)
	if !d.backoff.hasEnded(now) {
		wait = min(wait, d.backoff.until.Sub(now))
	}
	return time.After(wait)
}

// handleResult records the result of an attempt. Then the payload has its outcome, or is queued for a
// retry.
func (d *pushDestination) handleResult(del delivery, a Attempt) {
	p := del.payload
	maybeDelivered := a.Outcome == OutcomeAccepted || a.Outcome == OutcomeUnknown
	for _, c := range del.cycles {
		c.endSend(maybeDelivered)
	}
	if a.Outcome == OutcomeUnknown && p.snapshot != nil {
		a.Outcome = OutcomeNotYet // a running total can safely be sent twice
	}
	waiting, _ := d.queue.size()
	d.log.logAttempt(a, waiting, d.stats.read().Pending)
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

// retry queues an undelivered payload again, unless a newer snapshot has replaced it. After close
// there are no retries. after is the delay that the destination requested.
func (d *pushDestination) retry(del delivery, after time.Duration) {
	p := del.payload
	isReplaced := p.snapshot != nil && p.snapshot.number < d.snapshots.Load()
	isClosed := d.acceptCtx.Err() != nil
	if isClosed && !isReplaced {
		d.recordLost(Shutdown, p)
		return
	}
	d.backoff.failed(time.Now(), after, del.pauses)
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

	// maxDoublings is the number of doublings after which shortestPause exceeds longestPause.
	maxDoublings = 6
)

// backoff determines the pause after failed deliveries. There is one backoff per destination, not
// per payload: if one payload can't be delivered, the next can't be either.
//
// When the destination becomes unavailable, all deliveries in flight fail. They count as one
// failure: the first of them begins a pause, and the others are those that started before it. They
// only extend the pause, if the destination requests a longer delay.
type backoff struct {
	until    time.Time // end of the pause
	failures int       // consecutive failures
	pauses   int       // number of pauses so far
}

// hasEnded reports whether the pause has ended.
func (b *backoff) hasEnded(now time.Time) bool { return !now.Before(b.until) }

// failed begins a pause after a failed delivery. pausesAtStart is the number of pauses when the
// delivery started. The pause doubles with each consecutive failure, up to longestPause. Up to half
// of it is subtracted at random, so that many daemons do not return to one destination
// simultaneously. The pause is at least the delay that the destination requested.
func (b *backoff) failed(now time.Time, requested time.Duration, pausesAtStart int) {
	if isCounted := pausesAtStart != b.pauses; isCounted { // as the failure that began the pause
		if until := now.Add(requested); until.After(b.until) && requested > 0 {
			b.until = until
		}
		return
	}
	pause := longestPause
	if b.failures < maxDoublings {
		pause = shortestPause << b.failures
	}
	b.failures++
	b.pauses++
	pause -= time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause, requested))
}

// succeeded ends the pause after a successful delivery. It does nothing if the delivery started
// before the pause, because then a later attempt has failed.
func (b *backoff) succeeded(pausesAtStart int) {
	if pausesAtStart == b.pauses {
		b.end()
	}
}

// end ends the pause and resets the failures.
func (b *backoff) end() { b.until, b.failures = time.Time{}, 0 }
