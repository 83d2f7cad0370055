package ring

import (
	"sync/atomic"
	"time"
)

// wakeAfterPublish wakes the consumer if it is parked, or if it is napping and the backlog is large.
func (s *sequence) wakeAfterPublish() {
	switch s.parked.Load() {
	case awake:
	case napping:
		if s.hasLargeBacklog(s.head.Load()) {
			s.wake()
		}
	default:
		s.wake()
	}
}

// hasLargeBacklog reports whether the backlog is large enough to wake the consumer from a nap. at is
// the position of the consumer.
func (s *sequence) hasLargeBacklog(at uint64) bool { return s.tail.Load()-at >= s.size/backlogPart }

// hasWork reports whether the consumer has a published run or a signal. at is the position of the
// consumer.
func (s *sequence) hasWork(at uint64) bool {
	_, published := s.read(at)
	return published || s.due(at)
}

// await puts the consumer to sleep until it may have work, or until a nap ends. at is the position of
// the consumer. It sets parked before it checks for work once more. So a producer either sees
// parked, or has published before the check.
func (s *sequence) await(at uint64, idle *idlePolicy) {
	state, mustStayAwake, nap := uint32(parked), s.hasWork, idle.mayNap()
	if nap {
		state, mustStayAwake = napping, s.hasUrgentWork
	}
	s.parked.Store(state)
	if mustStayAwake(at) {
		s.unpark()
		return
	}
	s.parks.Add(1)
	idle.begin(nap)
	select {
	case <-s.token:
		s.wakes.Add(1)
	case <-idle.timer.C:
		s.unpark()
	}
	idle.timer.Stop()
}

// hasUrgentWork reports whether the consumer has work that would wake it from a nap: a signal, or a
// large backlog that begins with a published run.
func (s *sequence) hasUrgentWork(at uint64) bool {
	return s.due(at) || s.hasLargeBacklog(at) && s.hasWork(at)
}

// napTime is the length of a nap. Only a wake ends a park.
const napTime = time.Millisecond

// maxSkippedNaps limits the back-off of naps.
const maxSkippedNaps = 15

// idlePolicy decides whether the next sleep of a consumer is a nap or a park. The consumer naps after
// work, except that naps are skipped after a useless nap, during which no work arrived: a client
// that sends single frames would otherwise cause two wakeups per frame. After the first useless nap
// one nap is skipped, after the next one three, and so on, up to maxSkippedNaps. Work that arrives
// during a nap resets this.
type idlePolicy struct {
	timer   *time.Timer // ends a nap
	worked  bool        // the consumer has had work since the last sleep
	napped  bool        // the last sleep was a nap
	skip    int         // number of naps still to skip
	backoff int         // number of naps to skip after the next useless nap
}

func newIdlePolicy() *idlePolicy {
	timer := time.NewTimer(napTime)
	timer.Stop()
	return &idlePolicy{timer: timer, backoff: 1}
}

// work records that there was work.
func (i *idlePolicy) work() { i.worked = true }

// mayNap reports whether the next sleep is a nap.
func (i *idlePolicy) mayNap() bool { return i.worked && i.skip == 0 }

// begin records that a sleep begins, and starts the timer if it is a nap.
func (i *idlePolicy) begin(nap bool) {
	switch {
	case i.napped && i.worked: // the last nap was useful
		i.skip, i.backoff = 0, 1
	case i.napped: // the last nap was useless
		i.skip, i.backoff = i.backoff, min(2*i.backoff+1, maxSkippedNaps)
	}
	if nap {
		i.timer.Reset(napTime)
	} else if i.worked && i.skip > 0 {
		i.skip--
	}
	i.napped, i.worked = nap, false
}

// parking lets the consumer sleep until it is woken. The consumer sets parked before its last check
// for work. The goroutine that resets parked to awake ends the sleep. If this is a producer, it sends
// exactly one token.
type parking struct {
	parked atomic.Uint32 // awake, napping or parked
	token  chan struct{} // ends a sleep
}

// The values of parking.parked.
const (
	awake   = iota
	napping // to be woken for a large backlog or a signal; the timer ends the nap
	parked  // to be woken for any work
)

// backlogPart is the fraction of a ring, as a divisor, that counts as a large backlog.
const backlogPart = 4

func (p *parking) init() { p.token = make(chan struct{}, 1) }

// wake ends the sleep of the consumer, if it is asleep. The caller must have stored the work before.
// The send does not block: the token of an earlier sleep was received before parked was set again.
func (p *parking) wake() {
	state := p.parked.Load()
	if state == awake {
		return
	}
	if isFirst := p.parked.CompareAndSwap(state, awake); isFirst { // no other goroutine ends this sleep
		p.token <- struct{}{}
	}
}

// unpark ends the sleep from the consumer's side. If a producer has ended it already, unpark receives
// the producer's token, so that the token does not end a later sleep.
func (p *parking) unpark() {
	if wasWoken := p.parked.Swap(awake) == awake; wasWoken {
		<-p.token
	}
}
