package door

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Outcome is what became of a request that was to go on.
type Outcome uint8

// String is its name in metrics.
func (o Outcome) String() string { return outcomeNames[o] }

const (
	OutcomeTaken   Outcome = iota
	OutcomeRefused         // by the destination, for good
	OutcomeLater           // the destination says try again
	OutcomeAway            // it did not answer
	OutcomeLeft            // its sender has left meanwhile
	OutcomeUnfit           // it can't be said in the destination's words

	outcomes = int(OutcomeUnfit) + 1
)

var outcomeNames = [outcomes]string{"taken", "refused", "later", "away", "left", "unfit"}

// Onward is what became of requests that were to go on. Any goroutine may use it.
type Onward struct {
	counts [outcomes]atomic.Uint64
	last   atomic.Pointer[Refusal] // nil: it took the last request, or was offered none yet
}

// Refusal is why who is behind did not take the last request that it was offered.
type Refusal struct {
	Answered bool
	Said     string // what it said, or why it did not answer
}

const maxSaid = 1 << 10 // bytes of what is said

// Note counts an outcome. That a sender has left, or spoke words that are not
// known there, says nothing of who is behind.
func (o *Onward) Note(became Outcome, said string) {
	o.counts[became].Add(1)
	switch became {
	case OutcomeTaken:
		if o.last.Load() != nil {
			o.last.Store(nil)
		}
	case OutcomeRefused, OutcomeLater, OutcomeAway:
		o.last.Store(&Refusal{became != OutcomeAway, span.Text(said, maxSaid)})
	}
}

// Counts are the requests by outcome, each also at 0.
func (o *Onward) Counts() map[string]uint64 {
	all := make(map[string]uint64, outcomes)
	for i, name := range outcomeNames {
		all[name] = o.counts[i].Load()
	}
	return all
}
