package export

import (
	"context"
	"math/rand/v2"
	"time"
)

// delivery is an attempt to deliver a payload.
type delivery struct {
	payload       *Payload
	cycles        []*cycleState // cycles whose spans the payload contains
	pausesAtStart int           // backoff.pauses when the delivery started: it shows whether a pause has begun since
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

// currentPhase returns the phase of the sender. It is accepting until the destination is closed, then draining
// until sending is aborted, and then aborted.
func (d *pushDestination) currentPhase() phase {
	isAborted := d.sendCtx.Err() != nil
	if isAborted {
		return aborted
	}
	if d.isClosed() {
		return draining
	}
	return accepting
}

// runSender sends queued payloads until the destination is closed and all payloads are delivered or lost. Each
// delivery runs in its own goroutine, which makes one request and returns the result. All decisions, such as
// whether to retry, are made here, in the sender goroutine.
func (d *pushDestination) runSender() {
	for {
		now := time.Now()
		current := d.currentPhase()
		d.startDeliveries(now, current)
		if d.isFinished(current) {
			break
		}
		d.waitForEvent(now, current)
	}
	unsent := d.queue.drain()
	d.recordLost(Shutdown, unsent...)
}

// startDeliveries starts deliveries of queued payloads, as many as can run now. Unless the daemon is shutting down, it
// first removes the payloads that are older than Config.RetryAge, and records them as lost.
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
		d.startDelivery(p)
	}
}

// startDelivery starts a goroutine that delivers a payload. Before that, it calls recordSendStart for each cycle, or
// export interval, whose spans the payload contains.
func (d *pushDestination) startDelivery(p *Payload) {
	next := delivery{
		payload:       p,
		cycles:        d.cyclesOf(p),
		pausesAtStart: d.backoff.pauses, // shows at the end whether another delivery has begun a pause meanwhile
	}
	for _, c := range next.cycles {
		c.recordSendStart()
	}
	d.running.Go(func() { d.deliver(next) })
}

// cyclesOf returns the states of the cycles, or export intervals, whose spans a payload contains: one cycle, or for
// running totals all cycles with undelivered spans.
func (d *pushDestination) cyclesOf(p *Payload) []*cycleState {
	if p.snapshot != nil {
		return d.undelivered.statesUpTo(p.snapshot.number)
	}
	return []*cycleState{p.cycle}
}

// canStartDelivery reports whether another delivery can start now. In the phase accepting, no delivery starts
// during the pause after a failure, and only one at a time after the pause, until one succeeds. In the phase
// draining, deliveries can always start, and in the phase aborted, never.
func (d *pushDestination) canStartDelivery(now time.Time, current phase) bool {
	switch current {
	case aborted:
		return false
	case draining:
		return true
	}
	if !d.backoff.hasEnded(now) {
		return false
	}
	if d.backoff.failures > 0 {
		return d.queue.deliveries() == 0 // one delivery tests the destination
	}
	return true
}

// deliver makes one attempt to deliver a payload, and passes the result to the sender.
func (d *pushDestination) deliver(del delivery) {
	ctx, cancel := context.WithTimeout(d.sendCtx, d.cfg.Timeout)
	defer cancel()
	attempt := d.exporter.Push.Deliver(ctx, del.payload)
	d.finished <- finishedDelivery{del, attempt}
}

// isFinished reports whether the sender can end: no delivery is running, and either sending is aborted, or the
// destination is closed and no payload is waiting.
func (d *pushDestination) isFinished(current phase) bool {
	if d.queue.deliveries() > 0 {
		return false
	}
	switch current {
	case accepting:
		return false
	case draining:
		_, isAnyWaiting := d.queue.oldestWaiting()
		return !isAnyWaiting
	}
	return true
}

// waitForEvent waits until a payload can be sent, is finished or has expired, or until the phase ends. It handles the
// result of a finished delivery, and ends the pause after a failure if the destination has recovered.
func (d *pushDestination) waitForEvent(now time.Time, current phase) {
	select {
	case f := <-d.finished:
		d.queue.endDelivery(f.payload)
		d.handleResult(f.delivery, f.Attempt)
	case <-d.link.recovered:
		d.backoff.end()

	// The next iteration of runSender handles these events.
	case <-d.queued: // a payload was queued
	case <-d.newTimer(now, current): // a payload has expired, or the pause has ended
	case <-d.phaseEnd(current):
	}
}

// phaseEnd returns a channel that is closed when a phase ends. It returns nil for the last phase.
func (d *pushDestination) phaseEnd(current phase) <-chan struct{} {
	switch current {
	case accepting:
		return d.acceptCtx.Done()
	case draining:
		return d.sendCtx.Done()
	}
	return nil
}

// newTimer returns a channel that receives when the oldest waiting payload expires, or earlier when the pause after
// a failure ends. It returns nil, a channel that never receives, if no payload is waiting, or if the daemon is shutting
// down: then payloads do not expire.
func (d *pushDestination) newTimer(now time.Time, current phase) <-chan time.Time {
	created, isAnyWaiting := d.queue.oldestWaiting()
	if !isAnyWaiting || current != accepting {
		return nil
	}
	expiry := created.Add(d.cfg.RetryAge)
	delay := expiry.Sub(now)
	if !d.backoff.hasEnded(now) {
		delay = min(delay, d.backoff.until.Sub(now))
	}
	return time.After(delay)
}

// handleResult handles the result of a finished delivery. It records that the payload was accepted or is lost, or
// queues it for a retry. A success ends the pause between deliveries, and a failure that can be retried begins one.
func (d *pushDestination) handleResult(del delivery, a Attempt) {
	del.recordSendEnd(a.Outcome)
	p := del.payload
	if a.Outcome == OutcomeUnknown && p.canBeSentTwice() {
		a.Outcome = OutcomeNotYet // a retry counts no span twice
	}
	d.recordAttempt(p, a)
	switch a.Outcome {
	case OutcomeAccepted:
		d.backoff.recordSuccess(del.pausesAtStart)
		d.recordAccepted(p, a.Rejected)
	case OutcomeNotYet:
		d.backoff.recordFailure(time.Now(), a.After, del.pausesAtStart)
		d.retry(p)
	case OutcomeRefused:
		d.recordLost(Rejected, p)
	case OutcomeNotWanted:
		d.recordLost(NotWanted, p)
	case OutcomeUnknown:
		d.recordLost(Ambiguous, p)
	}
}

// recordSendEnd records in each cycle, or export interval, whose spans the payload contains that the delivery has
// ended with the given outcome.
func (d *delivery) recordSendEnd(outcome Outcome) {
	maybeDelivered := outcome == OutcomeAccepted || outcome == OutcomeUnknown
	for _, c := range d.cycles {
		c.recordSendEnd(maybeDelivered)
	}
}

// recordAttempt records an attempt to deliver a payload in the log, the stats and the state of the destination.
func (d *pushDestination) recordAttempt(p *Payload, a Attempt) {
	waiting, _ := d.queue.size()
	d.log.logAttempt(p, a, waiting, d.stats.read().Pending)
	d.link.recordAttempt(a)
	p.tries++
	p.lastErr = a.Err
	d.stats.recordAttempt(p, a)
}

// retry queues a payload again after a failed delivery. If a newer payload contains the same running totals, it
// records the payload as replaced instead. If the destination is closed, it records the payload as lost.
func (d *pushDestination) retry(p *Payload) {
	switch {
	case d.isReplaced(p):
		d.recordReplaced(p)
	case d.isClosed():
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

// recordFailure begins a pause after a failed delivery. It begins none if another delivery has begun a pause since this
// one started: failures of concurrent deliveries count as one. pausesAtStart is the value of b.pauses when the delivery
// started. In any case, the pause lasts at least requestedDelay, which the destination has requested.
func (b *backoff) recordFailure(now time.Time, requestedDelay time.Duration, pausesAtStart int) {
	isFirstFailure := pausesAtStart == b.pauses
	if isFirstFailure {
		b.until = now.Add(b.nextPause())
		b.failures++
		b.pauses++
	}
	if requestedDelay > 0 {
		b.extend(now.Add(requestedDelay))
	}
}

// extend extends the pause to the given time, unless it is longer already.
func (b *backoff) extend(until time.Time) {
	if until.After(b.until) {
		b.until = until
	}
}

// nextPause returns the length of the pause if another delivery fails now. It doubles with each consecutive
// failure, from shortestPause to longestPause. A random part, up to a half, is subtracted, so that many daemons do
// not retry at the same time.
func (b *backoff) nextPause() time.Duration {
	pause := longestPause
	if b.failures < maxDoublings {
		pause = shortestPause << b.failures
	}
	jitter := time.Duration(rand.Int64N(int64(pause / 2)))
	return pause - jitter
}

// recordSuccess ends the pause after a successful delivery, unless the failure of another one has begun a pause
// meanwhile. pausesAtStart is the value of b.pauses when the delivery started.
func (b *backoff) recordSuccess(pausesAtStart int) {
	if pausesAtStart == b.pauses {
		b.end()
	}
}

// end ends the pause and resets the failures.
func (b *backoff) end() { b.until, b.failures = time.Time{}, 0 }
