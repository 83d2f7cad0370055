package flush

import (
	"net/http"
	"time"
)

// Outcome is what one try to deliver a payload means for it.
type Outcome int

const (
	OutcomeAccepted  Outcome = iota // the destination has it
	OutcomeNotYet                   // the destination certainly does not have it; try again
	OutcomeRefused                  // the destination does not have it and will not take it
	OutcomeNotWanted                // the destination takes no statistics
	OutcomeUnknown                  // the destination may have it
)

// Attempt is what became of one try.
type Attempt struct {
	Outcome  Outcome
	Err      error         // nil only where all was accepted; a warning where it was all the same
	Silent   bool          // nobody answered
	After    time.Duration // how long the destination asked us to wait
	Rejected uint64        // spans of an accepted payload that the destination left out
	Clock    Clock         // as its answer says
}

// Clock is how far a destination's clock is ahead of ours, within a second or so: an answer says whole
// seconds, as they were some time before it is read. At is when it was read, zero where no answer said a
// time.
type Clock struct {
	Ahead time.Duration
	At    time.Time
}

// ClockOf is what the Date of an answer says that was read just now.
func ClockOf(date string, now time.Time) Clock {
	said, err := http.ParseTime(date)
	if err != nil {
		return Clock{}
	}
	return Clock{said.Sub(now), now}
}
