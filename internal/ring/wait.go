package ring

import (
	"sync/atomic"
	"time"
)

// wakeFor ends the sleep for a run that was published.
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

// backlogged tells whether a consumer that naps at a position should get up.
func (s *sequence) backlogged(at uint64) bool { return s.tail.Load()-at >= s.size/backlogPart }

// ready tells whether a run or a signal is there for a consumer at a position.
func (s *sequence) ready(at uint64) bool {
	_, published := s.read(at)
	return published || s.due(at)
}

// await returns when there may be work at a position, or a nap is over.
func (s *sequence) await(at uint64, sleeps *idle) {
	state, enough, nap := uint32(parked), s.ready, sleeps.mayNap()
	if nap {
		state, enough = napping, s.shouldStayAwake
	}
	s.parked.Store(state)
	if enough(at) {
		s.unpark()
		return
	}
	s.parks.Add(1)
	sleeps.begin(nap)
	select {
	case <-s.token:
		s.wakes.Add(1)
	case <-sleeps.timer.C:
		s.unpark()
	}
	sleeps.timer.Stop()
}

// shouldStayAwake tells whether a consumer at a position should not even begin a nap.
func (s *sequence) shouldStayAwake(at uint64) bool {
	return s.due(at) || s.backlogged(at) && s.ready(at)
}

// napTime is the length of a nap. Only a wake ends a park.
const napTime = time.Millisecond

// maxSkippedNaps bounds the back-off of naps.
const maxSkippedNaps = 15

// idle decides how a consumer sleeps: it naps after work, unless the last naps ended without work. Such a nap is a
// wake for nothing: a client that sends single frames now and then would pay two wakes per frame. So after it one nap
// is skipped, then three, and so on, until work arrives during a nap.
type idle struct {
	timer   *time.Timer // of a nap
	worked  bool        // since the last sleep
	napped  bool        // the last sleep was a nap
	skip    int         // naps that are still to be skipped
	backoff int         // naps to skip after the next nap without work
}

func newIdle() *idle {
	timer := time.NewTimer(napTime)
	timer.Stop()
	return &idle{timer: timer, backoff: 1}
}

// work records that there was work.
func (i *idle) work() { i.worked = true }

// mayNap reports whether the next sleep is a nap.
func (i *idle) mayNap() bool { return i.worked && i.skip == 0 }

// begin records the sleep that begins.
func (i *idle) begin(nap bool) {
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

// parking is where the consumer waits. The flag is not awake from before the
// consumer's last look until somebody takes it back: the one who does ends the
// park, and if that was not the consumer, sends it exactly one token.
type parking struct {
	parked atomic.Uint32
	token  chan struct{}
}

// The values of the flag.
const (
	awake   = iota
	napping // wants to be woken for a backlog or a signal, and is up again soon anyway
	parked  // wants to be woken for anything
)

// backlogPart is the part of a ring that is worth waking a napping consumer for.
const backlogPart = 4

func (p *parking) init() { p.token = make(chan struct{}, 1) }

// wake ends the consumer's sleep if there is one. The caller has stored before what the
// consumer waits for. It can't block: the token of an earlier sleep was received before the
// flag was raised again.
func (p *parking) wake() {
	if state := p.parked.Load(); state != awake && p.parked.CompareAndSwap(state, awake) {
		p.token <- struct{}{}
	}
}

// unpark takes the flag back. If a producer was faster, its token is on the
// way and is received here, so that none is left for a later sleep.
func (p *parking) unpark() {
	if p.parked.Swap(awake) == awake {
		<-p.token
	}
}
