package flush

import (
	"context"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Exporter is what a kind of destination has of its own: how statistics are encoded
// for it, and how it is spoken to. All else (what waits, who goes when, what is given
// up, the books) a Destination does alike for each.
type Exporter interface {
	// Name is the destination's in metrics, the log and status. It does not change.
	Name() string

	// URL is where the destination is, for a person. It does not change.
	URL() string

	// InOrder says whether payloads go one at a time, each when the one before has its
	// outcome, because the destination takes nothing that is older than what it has.
	// It does not change.
	InOrder() bool

	// SendsTotals says whether payloads have running totals: all that was counted since a
	// series began. Then the payloads of a cycle say all that those of earlier ones did,
	// cycles without spans have payloads too, because a reader forgets what it is not told
	// of, and a second copy changes nothing. It does not change, and it needs InOrder.
	SendsTotals() bool

	// Wants says whether the destination wants statistics at present, and the longest
	// payload that it takes, 0 where it did not say. Any goroutine may ask.
	Wants() (statistics bool, payloadBytes int)

	// Encode makes payloads of a sealed cycle's rows, none longer than limit, and
	// hands each to emit as soon as it is made, so that not all need memory at once.
	// It returns what else is to be said. The goroutine that seals calls it, so
	// it computes and waits for nobody; it only reads, and keeps nothing of sealed and
	// rows but their texts.
	Encode(sealed *aggregate.Sealed, rows []Row, limit int, emit func(*Payload)) Encoded

	// Deliver offers the destination a payload once. Several calls may be under way,
	// of payloads of different origins, unless InOrder; each ends soon after its context.
	Deliver(ctx context.Context, p *Payload) Attempt

	// Watch asks the destination what it wants, and how it does, where no payload
	// tells. It has a goroutine until its context ends; an exporter that has nothing
	// to ask returns.
	Watch(ctx context.Context, link *Link)
}

// Payload is one encoded request on its way to a destination.
type Payload struct {
	Origin span.Origin // of all that is in it; without a name where it is of several
	Body   []byte
	Spans  uint64 // that its body stands for; 0 of running totals
	Totals Totals // that its body says, nil where it has deltas

	// Of the Destination only.
	sequence uint64 // in the order in which they were made, from 0
	born     time.Time
	cycle    *cycleDelivery
	copy     *totalsCopy // that it is of; nil of deltas
	flush    *Flush      // the cycle's line in the history
	tries    int         // how often the destination was asked to take it
	lastErr  error       // why it did not at the last of them
}

// Totals are the running totals that a payload says. The sender and the exporter use them.
type Totals interface {
	// Arrive notes that the destination has them, and returns the spans that it did not
	// have before.
	Arrive() (spans uint64)
}

// Encoded is what there is to say of an encoded cycle beside its payloads.
type Encoded struct {
	Lost   map[Reason]uint64 // spans that will be in no payload
	Totals TotalsStats       // of an exporter that sends totals
}

// TotalsStats is how many running totals an exporter has and had.
type TotalsStats struct {
	Series     int    // at present
	Ended      uint64 // series
	Overflowed uint64 // spans that found no room in a series of their own
}

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
