package ring

import (
	"sync/atomic"
	"time"
)

// wakeFor wakes the consumer after a publication, if it is parked, or if it is napping and the
// backlog is large.
func (s *sequence) wakeFor() {
	switch s.parked.Load() {
	case awake:
	case napping:
		if s.backlogged(s.head.Load()) {
			s.wake()
		}
	default:
		s.wake()
	}
}

// backlogged reports whether the backlog of a consumer at a position is large enough to interrupt a
// nap.
func (s *sequence) backlogged(at uint64) bool { return s.tail.Load()-at >= s.size/backlogPart }

// ready reports whether a consumer at a position has a published run or a signal.
func (s *sequence) ready(at uint64) bool {
	_, published := s.read(at)
	return published || s.due(at)
}

// await waits until a consumer at a position may have work, or a nap ends. The consumer announces
// its sleep before it checks for work once more, so a producer either sees the announcement or has
// published before the check.
func (s *sequence) await(at uint64, idle *idlePolicy) {
	state, hasWork, nap := uint32(parked), s.ready, idle.mayNap()
	if nap {
		state, hasWork = napping, s.shouldStayAwake
	}
	s.parked.Store(state)
	if hasWork(at) {
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

// shouldStayAwake reports whether a consumer at a position should not begin a nap.
func (s *sequence) shouldStayAwake(at uint64) bool {
	return s.due(at) || s.backlogged(at) && s.ready(at)
}

// napTime is the length of a nap. Only a wake ends a park.
const napTime = time.Millisecond

// maxSkippedNaps limits the back-off of naps.
const maxSkippedNaps = 15

// idlePolicy decides how a consumer sleeps: it naps after work, unless the last naps ended without work.
// A nap without work is a useless wakeup: a client that sends single frames now and then would
// cause two wakeups per frame. So after such a nap one nap is skipped, then three, and so on, until
// work arrives during a nap.
type idlePolicy struct {
	timer   *time.Timer // ends a nap
	worked  bool        // since the last sleep
	napped  bool        // the last sleep was a nap
	skip    int         // number of naps still to skip
	backoff int         // naps to skip after the next nap without work
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

// begin records the sleep that begins.
func (i *idlePolicy) begin(nap bool) {
	switch {
	case i.napped && i.worked:
		i.skip, i.backoff = 0, 1
	case i.napped:
		i.skip, i.backoff = i.backoff, min(2*i.backoff+1, maxSkippedNaps)
	}
	if nap {
		i.timer.Reset(napTime)
	} else if i.worked && i.skip > 0 {
		i.skip--
	}
	i.napped, i.worked = nap, false
}

// parking lets the consumer sleep until it is woken. The consumer sets parked before it looks for
// work for the last time. Whoever resets it with compare-and-swap ends the sleep. If that was a
// producer, it sends exactly one token.
type parking struct {
	parked atomic.Uint32
	token  chan struct{}
}

// The values of the flag.
const (
	awake   = iota
	napping // wake for a large backlog or a signal; ends by itself soon
	parked  // wake for any work
)

// backlogPart is the fraction of a ring, as a divisor, that counts as a large backlog.
const backlogPart = 4

func (p *parking) init() { p.token = make(chan struct{}, 1) }

// wake ends the consumer's sleep, if there is one. The caller must have stored the work before. The
// send does not block: the token of an earlier sleep was received before parked was set again.
func (p *parking) wake() {
	if state := p.parked.Load(); state != awake && p.parked.CompareAndSwap(state, awake) {
		p.token <- struct{}{}
	}
}

// unpark ends the sleep without waiting. If a producer was faster, unpark receives its token, so
// that none is left for a later sleep.
func (p *parking) unpark() {
	if p.parked.Swap(awake) == awake {
		<-p.token
	}
}
