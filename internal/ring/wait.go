package ring

import (
	"sync/atomic"
	"time"
)

// wakeAfterPublish wakes the consumer if it sleeps. Producers call it after they have published slots.
// It wakes the consumer from a nap, a short sleep that a timer ends, only if many slots are waiting.
func (s *sequence) wakeAfterPublish() {
	switch s.sleepState.Load() {
	case parked:
		s.wake()
	case napping:
		if s.hasLargeBacklog(s.head.Load()) {
			s.wake()
		}
	}
}

// hasLargeBacklog reports whether so many slots are claimed that a consumer at the given position is
// woken from a nap.
func (s *sequence) hasLargeBacklog(position uint64) bool {
	return s.tail.Load()-position >= s.size/backlogPart
}

// hasWork reports whether a published slot or a signal is ready for a consumer at the given position.
func (s *sequence) hasWork(position uint64) bool {
	_, isPublished := s.read(position)
	return isPublished || s.isSignalDue(position)
}

// await lets the consumer sleep until a producer wakes it. The sleep is a nap, which a timer ends after napTime, or a
// park, which only a producer ends. await returns at once if there is work at the given position, where the consumer
// reads next.
func (s *sequence) await(position uint64, idle *idlePolicy) {
	isNap := idle.isNextNap()
	s.sleepState.Store(sleepStateOf(isNap))
	// A producer that publishes after this check sees sleepState, and wakes the consumer.
	if s.hasWakingWork(position, isNap) {
		s.cancelSleep() // also receives the token of a producer that has already woken the consumer
		return
	}
	s.sleeps.Add(1)
	idle.beginSleep(isNap)
	select {
	case <-s.wakeToken: // a producer has ended the sleep
		s.wakes.Add(1)
	case <-idle.timer.C: // the nap has ended; the timer runs only during naps
		s.cancelSleep()
	}
	idle.timer.Stop()
}

// sleepStateOf returns the state of a consumer that naps, or that parks.
func sleepStateOf(isNap bool) uint32 {
	if isNap {
		return napping
	}
	return parked
}

// hasWakingWork reports whether there is work that would end the sleep at once: urgent work in a nap, any
// work in a longer sleep.
func (s *sequence) hasWakingWork(position uint64, isNap bool) bool {
	if isNap {
		return s.hasUrgentWork(position)
	}
	return s.hasWork(position)
}

// hasUrgentWork reports whether the consumer has work that would wake it from a nap: a signal, or a
// large backlog that begins with a published run.
func (s *sequence) hasUrgentWork(position uint64) bool {
	hasLargeBacklog := s.hasLargeBacklog(position) && s.hasWork(position)
	return s.isSignalDue(position) || hasLargeBacklog
}

// napTime is the length of a nap. Only a wake ends a park.
const napTime = time.Millisecond

// Limits of idlePolicy.backoff.
const (
	minSkippedNaps = 1
	maxSkippedNaps = 15
)

// idlePolicy decides whether the next sleep of a consumer is a nap or a park. The consumer naps after
// work, except that naps are skipped after a useless nap, during which no work arrived: a client
// that sends single frames would otherwise cause two wakeups per frame. After the first useless nap
// one nap is skipped, after the next one three, and so on, up to maxSkippedNaps. Work that arrives
// during a nap resets this.
type idlePolicy struct {
	timer      *time.Timer // timer that ends a nap
	hadWork    bool        // the consumer has had work since the last sleep
	wasNap     bool        // the last sleep was a nap
	napsToSkip int         // number of naps that are still to be replaced by parks
	backoff    int         // value of napsToSkip after the next useless nap
}

func newIdlePolicy() *idlePolicy {
	timer := time.NewTimer(napTime)
	timer.Stop()
	return &idlePolicy{timer: timer, backoff: minSkippedNaps}
}

// recordWork records that there was work.
func (i *idlePolicy) recordWork() { i.hadWork = true }

// isNextNap reports whether the next sleep is a nap.
func (i *idlePolicy) isNextNap() bool { return i.hadWork && i.napsToSkip == 0 }

// beginSleep records that the consumer begins to sleep. It starts the timer that ends a nap.
func (i *idlePolicy) beginSleep(isNap bool) {
	if i.wasNap {
		i.setNapsToSkip()
	}
	if isNap {
		i.timer.Reset(napTime)
	} else if i.hadWork {
		i.napsToSkip-- // this park replaces the nap that would follow work
	}
	i.wasNap = isNap
	i.hadWork = false
}

// setNapsToSkip must be called after a nap. It decides how many naps are skipped, so that the consumer parks instead:
// none if work arrived during the nap, otherwise 1, then 3, 7 and 15.
func (i *idlePolicy) setNapsToSkip() {
	if i.hadWork {
		i.napsToSkip = 0
		i.backoff = minSkippedNaps
		return
	}
	i.napsToSkip = i.backoff
	i.backoff = min(2*i.backoff+1, maxSkippedNaps)
}

// parking lets the consumer sleep until it is woken. The consumer sets sleepState before its last check
// for work. The goroutine that changes sleepState to awake ends the sleep. If this is a producer, it sends
// exactly one token, which the consumer receives before its next sleep.
type parking struct {
	sleepState atomic.Uint32 // awake, napping or parked
	wakeToken  chan struct{} // holds a token after a producer ended a sleep
}

// The values of parking.sleepState.
const (
	awake   = iota
	napping // to be woken for a large backlog or a signal; the timer ends the nap
	parked  // to be woken for any work
)

// backlogPart is the fraction of a ring, as a divisor, that counts as a large backlog.
const backlogPart = 4

func (p *parking) init() { p.wakeToken = make(chan struct{}, 1) }

// wake ends the sleep of the consumer. It does nothing if the consumer is awake. Producers call it
// after they have published slots or sent a signal. If several of them call it at once, only one ends
// the sleep.
func (p *parking) wake() {
	if p.sleepState.Load() == awake { // usual; cheaper than Swap
		return
	}
	endedSleep := p.sleepState.Swap(awake) != awake
	if endedSleep {
		p.wakeToken <- struct{}{} // does not block: the channel has space for the only token of this sleep
	}
}

// cancelSleep lets the consumer end its own sleep. If a producer has ended the sleep already, cancelSleep
// receives the producer's token, so that the token does not end a later sleep.
func (p *parking) cancelSleep() {
	wasWoken := p.sleepState.Swap(awake) == awake
	if wasWoken {
		<-p.wakeToken
	}
}
