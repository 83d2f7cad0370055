package ring

import "sync/atomic"

// parking is where the consumer waits. The flag is not awake from before the
// consumer's last look until somebody takes it back: the one who does ends the
// park, and if that was not the consumer, sends it exactly one token.
type parking struct {
	parked atomic.Uint32
	token  chan struct{}
}

// What the flag says.
const (
	awake   = iota
	napping // wants to be woken for a backlog or a signal, and is up again soon anyway
	parked  // wants to be woken for anything
)

// backlogPart is the part of a ring that is worth waking a napping consumer for.
const backlogPart = 4

func (p *parking) init() { p.token = make(chan struct{}, 1) }

// wake ends the consumer's sleep if there is one. Whoever calls it has stored what
// the consumer waits for before. It can't block: the token of an earlier sleep was
// received before the flag was raised again.
func (p *parking) wake() {
	if state := p.parked.Load(); state != awake && p.parked.CompareAndSwap(state, awake) {
		p.token <- struct{}{}
	}
}

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

// await returns when there may be work at a position, or now and then without.
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

// unpark takes the flag back. If a producer was faster, its token is on the
// way and is received here, so that none is left for a later sleep.
func (s *sequence) unpark() {
	if s.parked.Swap(awake) == awake {
		<-s.token
	}
}
