package ring

import "sync/atomic"

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
