package flush

import "time"

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
}
