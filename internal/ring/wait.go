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
	state, enough, kind := uint32(parked), s.ready, sleeps.next()
	if kind == nap {
		state, enough = napping, s.shouldStayAwake
	}
	s.parked.Store(state)
	if enough(at) {
		s.unpark()
		return
	}
	s.parks.Add(1)
	sleeps.begin(kind)
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

// napTime is the length of a nap. A park has no end but a wake.
const napTime = time.Millisecond

// sleep is what a consumer does that finds nothing.
type sleep uint8

const (
	park sleep = iota
	nap
)

// idle is how a consumer sleeps: naps while there is work, and then a park.
type idle struct {
	timer    *time.Timer // of a nap
	last     sleep
	worked   bool          // since that one
	before   sleep         // what came before it, where it is a nap
	backoffs [2]napBackoff // of naps, by what comes before
}

func newIdle() *idle {
	timer := time.NewTimer(napTime)
	timer.Stop()
	return &idle{timer: timer}
}

// work notes that there was some.
func (i *idle) work() { i.worked = true }

// next is the sleep that may begin now.
func (i *idle) next() sleep {
	if i.worked && i.backoffs[i.last].skip == 0 {
		return nap
	}
	return park
}

func (i *idle) begin(s sleep) {
	if i.last == nap {
		i.backoffs[i.before].learn(i.worked)
	}
	switch {
	case s == nap:
		i.before = i.last
		i.timer.Reset(napTime)
	case i.worked:
		i.backoffs[i.last].skip--
	}
	i.last, i.worked = s, false
}

// napBackoff says whether to nap. A nap that ends without work is a wake for nothing: a
// tracer that sends now and then, in one frame at a time, would cost two of them each. So
// the nap is left out once after such a one, then three times, and so on, until there was
// work in one.
type napBackoff struct{ skip, skips uint8 }

const maxSkips = 15

func (b *napBackoff) learn(worked bool) {
	if b.skips = min(2*b.skips+1, maxSkips); worked {
		b.skips = 0
	}
	b.skip = b.skips
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
