package ring

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	// spins is how often an idle consumer looks again at once, about the time
	// that a producer needs to fill a run.
	spins = 64
	// yields is how often it then lets other goroutines run before it parks.
	yields = 16

	// The idle delay bounds one park. It is a net under the wake, so it is long;
	// it starts short because a consumer that has just had work is worth a look.
	idleMin = time.Millisecond
	idleMax = time.Second
)

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

// idle is the consumer's patience: how long its next park may last.
type idle struct {
	timer    *time.Timer
	delay    time.Duration
	min, max time.Duration
}

func newIdle(least, most time.Duration) *idle {
	timer := time.NewTimer(most)
	timer.Stop()
	return &idle{timer: timer, delay: least, min: least, max: most}
}

// reset makes the next park short again, because there was work.
func (i *idle) reset() { i.delay = i.min }

// next arms the timer and doubles the delay of the park after this one.
func (i *idle) next() {
	i.timer.Reset(i.delay)
	i.delay = min(2*i.delay, i.max)
}

// await returns when there may be work at a position, or now and then without.
func (s *sequence) await(at uint64, patience *idle) {
	for range spins {
		if s.ready(at) {
			return
		}
	}
	for range yields {
		runtime.Gosched()
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
	patience.next()
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
