package ring

import "sync/atomic"

// parking is where the consumer waits. The flag is 1 from before the
// consumer's last look until somebody takes it back: the one who does ends the
// park, and if that was not the consumer, sends it exactly one token.
type parking struct {
	parked atomic.Uint32
	token  chan struct{}
}

func (p *parking) init() { p.token = make(chan struct{}, 1) }

// wakeParked ends the consumer's park if there is one. Whoever calls it has
// stored what the consumer waits for before.
func (p *parking) wakeParked() {
	if p.parked.Load() != 0 {
		p.wake()
	}
}

// wake sends the token. It can't block: the token of an earlier park was
// received before the flag was raised again.
func (p *parking) wake() {
	if p.parked.CompareAndSwap(1, 0) {
		p.token <- struct{}{}
	}
}

// await returns when there may be work at a position, or now and then without.
func (s *sequence) await(at uint64, patience *idle) {
	for patience.more() {
		if s.ready(at) {
			return
		}
	}
	s.park(at, patience)
}

// ready tells whether a run or a signal is there for a consumer at a position.
func (s *sequence) ready(at uint64) bool {
	_, published := s.read(at)
	return published || s.due(at)
}

// park waits for a token or for the idle delay.
func (s *sequence) park(at uint64, patience *idle) {
	s.parked.Store(1)
	if s.ready(at) {
		s.unpark()
		return
	}
	s.parks.Add(1)
	patience.arm()
	select {
	case <-s.token:
		s.wakes.Add(1)
	case <-patience.timer.C:
		s.unpark()
	}
	patience.timer.Stop()
}

// unpark takes the flag back. If a producer was faster, its token is on the
// way and is received here, so that none is left for a later park.
func (s *sequence) unpark() {
	if !s.parked.CompareAndSwap(1, 0) {
		<-s.token
	}
}
