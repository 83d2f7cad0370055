package otlp

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Result is what became of a request as far as counting goes.
type Result uint8

const (
	ResultCounted       Result = iota
	ResultCountedBefore        // its SDK has no answer to it yet, or one that says try again, and does
	ResultByTracer             // its sender says that it computes its statistics itself
	ResultUnread               // it can't be read
	ResultNoRoom               // a ring or an interval has no room, or the daemon stops
	ResultTooMany              // it has more spans than the rings can ever hold
	ResultTooLarge             // over --otlp-max-body, as it comes or without gzip
	ResultBusy                 // no buffer is free
	ResultNotWanted            // no destination takes statistics
	ResultIncomplete           // its SDK did not send all of it
	ResultRefused              // nothing that is taken here, by its path, method or header
	ResultOther                // metrics or logs, which have no spans
	ResultBug                  // a defect of ours, contained

	results = int(ResultBug) + 1
)

// resultNames are the results' names in metrics.
var resultNames = [results]string{
	"counted", "counted_before", "by_tracer", "unread", "no_room", "too_many", "too_large", "busy",
	"not_wanted", "incomplete", "refused", "other", "bug",
}

// outcome is what became of a request that was to go on.
type outcome uint8

const (
	outcomeTaken   outcome = iota
	outcomeRefused         // by the destination, for good
	outcomeLater           // the destination says try again
	outcomeAway            // it did not answer
	outcomeLeft            // its SDK has left meanwhile
	outcomeUnfit           // it can't be said in the destination's words

	outcomes = int(outcomeUnfit) + 1
)

var outcomeNames = [outcomes]string{"taken", "refused", "later", "away", "left", "unfit"}

// onward is what became of requests that were to go on. Any goroutine may use it.
type onward struct {
	counts [outcomes]atomic.Uint64
	last   atomic.Pointer[Refusal] // nil: the collector took the last request, or was offered none yet
}

// Refusal is why a collector did not take the last request that it was offered.
type Refusal struct {
	Answered bool
	Said     string // what it said, or why it did not answer
}

const maxSaid = 1 << 10 // bytes of what is said

// note counts an outcome. That a sender has left, or spoke words that the collector does not know, says
// nothing of the collector.
func (o *onward) note(became outcome, said string) {
	o.counts[became].Add(1)
	switch became {
	case outcomeTaken:
		if o.last.Load() != nil {
			o.last.Store(nil)
		}
	case outcomeRefused, outcomeLater, outcomeAway:
		o.last.Store(&Refusal{became != outcomeAway, span.Text(said, maxSaid)})
	}
}
