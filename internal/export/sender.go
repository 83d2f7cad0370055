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

// phase is the state of a sender. runSender determines it once per iteration, because all decisions
// of an iteration, and the events that it waits for, must refer to the same phase.
type phase int

const (
	accepting phase = iota // cycles are accepted; ends with close
	draining               // each queued payload is sent once; ends when none is left, or with abort
	aborted                // nothing is sent any more
)

// currentPhase returns the phase that the shutdown of the destination has reached.
func (d *pushDestination) currentPhase() phase {
	if isAborted := d.sendCtx.Err() != nil; isAborted {
		return aborted
	}
	if isClosed := d.acceptCtx.Err() != nil; isClosed {
		return draining
	}
	return accepting
}

// runSender sends queued payloads until the destination is closed and all payloads have an outcome.
// Each delivery runs in its own goroutine, which makes one request and returns the result. All
// decisions, such as whether to retry, are made here, in the sender goroutine.
func (d *pushDestination) runSender() {
	for {
		now, phase := time.Now(), d.currentPhase()
		d.startDeliveries(now, phase)
		if d.isFinished(phase) {
			break
		}
		d.handleNextEvent(now, phase)
	}
	unsent := d.queue.drain()
	d.recordLost(Shutdown, unsent...)
}

// startDeliveries starts as many deliveries as limits and backoff permit. Before, it abandons expired
// payloads. While draining, no payload expires, because each one is sent once more.
func (d *pushDestination) startDeliveries(now time.Time, current phase) {
	if current == accepting {
		expired := d.queue.expire(now.Add(-d.cfg.RetryAge))
		d.recordLost(Expired, expired...)
	}
	for d.canStartDelivery(now, current) {
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

// canStartDelivery reports whether another delivery can start now. While cycles are accepted, none
// starts during a pause, and after a failure only one at a time until one succeeds. While draining,
// deliveries always start, and after an abort they never do.
func (d *pushDestination) canStartDelivery(now time.Time, current phase) bool {
	switch current {
	case aborted:
		return false
	case draining:
		return true
	}
	isPaused := !d.backoff.hasEnded(now)
	hasFailed := d.backoff.failures > 0
	isDelivering := d.queue.deliveries() > 0
	return !isPaused && !(hasFailed && isDelivering)
}

// deliver makes one attempt to deliver a payload, and passes the result to the sender.
func (d *pushDestination) deliver(del delivery) {
	ctx, cancel := context.WithTimeout(d.sendCtx, d.cfg.Timeout)
	defer cancel()
	d.finished <- finishedDelivery{del, d.exporter.Push.Deliver(ctx, del.payload)}
}

// isFinished reports whether the sender can end. It can if the destination is closed, no payload is
// in flight, and no payload will be sent any more.
func (d *pushDestination) isFinished(current phase) bool {
	if current == accepting || d.queue.deliveries() > 0 {
		return false
	}
	_, isWaiting := d.queue.oldestWaiting()
	return !isWaiting || current == aborted
}

// handleNextEvent blocks until the sender has something to do: a delivery has finished, a payload was
// queued, a pause has ended, a payload has expired, or the phase has ended. It handles the result of
// a finished delivery. It ends the pause if the destination has recovered, because queued payloads
// may be about to expire.
func (d *pushDestination) handleNextEvent(now time.Time, current phase) {
	// A nil channel never receives: pauses and expiry matter only while cycles are accepted, and the
	// phase after an abort does not end.
	var timer <-chan time.Time
	var phaseEnd <-chan struct{}
	switch current {
	case accepting:
		timer = d.newTimer(now)
		phaseEnd = d.acceptCtx.Done()
	case draining:
		phaseEnd = d.sendCtx.Done()
	}
	select {
	case f := <-d.finished:
		d.queue.endDelivery(f.payload)
		d.handleResult(f.delivery, f.Attempt)
	case <-timer:
	case <-d.queued:
	case <-d.link.recovered:
		d.backoff.end()
	case <-phaseEnd:
	}
}

// newTimer returns a channel that receives when the oldest waiting payload expires, or earlier when
// the current pause ends. It returns nil if no payload is waiting.
func (d *pushDestination) newTimer(now time.Time) <-chan time.Time {
	born, isWaiting := d.queue.oldestWaiting()
	if !isWaiting {
		return nil
	}
	expiry := born.Add(d.cfg.RetryAge)
	delay := expiry.Sub(now)
	if isPaused := !d.backoff.hasEnded(now); isPaused {
		delay = min(delay, d.backoff.until.Sub(now))
	}
	return time.After(delay)
}

// handleResult records the result of a finished delivery. Then the payload either has its final
// outcome or is queued for a retry.
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
		d.backoff.recordSuccess(del.pauses)
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

// retry begins a pause after a failed delivery, and queues the payload again. The pause is at least
// requestedDelay. A payload that a newer snapshot has replaced is not queued again. After the
// destination was closed there are no retries, so the payload is lost.
func (d *pushDestination) retry(del delivery, requestedDelay time.Duration) {
	p := del.payload
	d.backoff.recordFailure(time.Now(), requestedDelay, del.pauses)
	isClosed := d.acceptCtx.Err() != nil
	switch {
	case d.isReplaced(p):
		d.recordReplaced(p)
	case isClosed:
		d.recordLost(Shutdown, p)
	default:
		d.stats.change(func(s *Stats) { s.Payloads[ResultRetried]++ })
		evicted := d.queue.put(p)
		d.recordLost(QueueFull, evicted...)
	}
}

// isReplaced reports whether a newer snapshot of the running totals contains the spans of a payload.
func (d *pushDestination) isReplaced(p *Payload) bool {
	return p.snapshot != nil && p.snapshot.number < d.snapshots.Load()
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
// When the destination becomes unavailable, all deliveries in flight fail. They count as one failure:
// the first one begins a pause. The others have started before the pause, so they can only extend it.
type backoff struct {
	until    time.Time // end of the pause
	failures int       // consecutive failures
	pauses   int       // number of pauses so far
}

// hasEnded reports whether the pause has ended.
func (b *backoff) hasEnded(now time.Time) bool { return !now.Before(b.until) }

// recordFailure begins a pause after a failed delivery. The pause doubles with each consecutive
// failure, minus a random part, so that many daemons do not retry at the same time. It is at least
// requestedDelay. pausesAtStart is the value of b.pauses when the delivery started: if a pause has
// begun since, the failure is not counted again, and can only extend the pause to requestedDelay.
func (b *backoff) recordFailure(now time.Time, requestedDelay time.Duration, pausesAtStart int) {
	earliestRetry := now.Add(requestedDelay)
	if isPauseBegun := pausesAtStart != b.pauses; isPauseBegun {
		if requestedDelay > 0 && earliestRetry.After(b.until) {
			b.until = earliestRetry
		}
		return
	}
	pause := longestPause
	if b.failures < maxDoublings {
		pause = shortestPause << b.failures
	}
	b.failures++
	b.pauses++
	jitter := time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause-jitter, requestedDelay))
}

// recordSuccess ends the pause after a successful delivery. It does nothing if the delivery started
// before the pause, because then a later attempt has failed.
func (b *backoff) recordSuccess(pausesAtStart int) {
	if pausesAtStart == b.pauses {
		b.end()
	}
}

// end ends the pause and resets the failures.
func (b *backoff) end() { b.until, b.failures = time.Time{}, 0 }
