package export

import (
	"context"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Exporter describes a destination: what it is called, what it needs, and how statistics get there. Either
// Push or Pull is set. The zero value of every other field is what most destinations need.
type Exporter struct {
	Name string // in metrics, the log and status
	URL  string // for operators, without credentials

	Push Push  // encodes and sends statistics
	Pull *Pull // publishes statistics to be scraped

	// InOrder makes payloads go one at a time, in the order in which they were made, because the
	// destination takes nothing older than what it has.
	InOrder bool

	// Cumulative says that payloads have running totals: everything counted since a series began. Then
	// cycles without spans are sent too, a newer cycle's payloads replace queued ones, and a payload can be
	// repeated. It needs InOrder.
	Cumulative bool

	// Bounds are the upper bounds of classic histogram buckets in seconds, if it has any.
	// sketch.CheckBounds accepts them, and those of all destinations together.
	Bounds []float64

	// LimitTotals sets how many running totals there may be. It is called before the first cycle. nil:
	// there are none.
	LimitTotals func(totals.Limits)

	// Wants returns whether the destination wants statistics at present, and the longest payload that it
	// takes, 0 if unknown. nil: it wants them, of any length.
	Wants func() (statistics bool, payloadBytes int)

	// Discovered reports whether an auto-discovered destination has been found. Until then nothing is held
	// for it. It stays found. nil: the destination is configured.
	Discovered func() bool

	// Watch asks the destination whether it is there and what it wants, when no payload tells. It runs
	// until its context ends. nil: nothing is asked.
	Watch func(ctx context.Context, link *Link)
}

// Push encodes statistics for a destination and sends them.
type Push interface {
	// Encode makes payloads of a cycle, none longer than its limit, and passes each to emit as soon as it
	// is made, so that not all need memory at once. It runs on the sealing goroutine, so it must not wait.
	// It keeps nothing of the cycle except strings.
	Encode(c *Cycle, emit func(*Payload)) Encoded

	// Deliver offers the destination a payload once, and returns soon after its context ends. Several calls
	// can be in flight, for payloads of different origins, unless the exporter is in order.
	Deliver(ctx context.Context, p *Payload) Attempt
}

// Pull publishes statistics that are scraped.
type Pull struct {
	// Publish adds a cycle to what scrapes get. It runs on the sealing goroutine, like Push.Encode.
	Publish func(c *Cycle) Encoded

	// Scrapes tracks scrapes.
	Scrapes *Scrapes
}

// Cycle is a sealed cycle while it is encoded.
type Cycle struct {
	*aggregate.Sealed
	Rows []Row
	// Limit is the maximum length of a payload.
	Limit int
	// IsSettled reports whether each span of the earlier cycles has been delivered, or never will be.
	IsSettled bool

	spans   uint64
	merging time.Duration // how long it took to merge the rows
	state   *cycleState
}

// Encoded is what an exporter returns for a cycle, in addition to payloads.
type Encoded struct {
	Lost   map[Reason]uint64 // spans that are in no payload and never will be
	Totals TotalsStats       // of an exporter with running totals
}

// TotalsStats counts the running totals of an exporter.
type TotalsStats struct {
	Series     int    // at present
	Ended      uint64 // series
	Overflowed uint64 // spans that found no room in a series of their own
}

// Payload is one encoded request.
type Payload struct {
	Origin span.Origin // of everything in it; empty if it has several
	Body   []byte
	Spans  uint64 // in the body; 0 for running totals, whose spans are accounted by cycle

	// Undelivered is how many spans the series of running totals have that the destination may lack, one
	// number for each series with any.
	Undelivered []uint64

	sequence uint64 // in the order in which payloads were made, from 0
	born     time.Time
	cycle    *cycleState
	snapshot *snapshot // that it is a part of; nil for deltas
	flush    *Flush    // the cycle's line in the history
	tries    int
	lastErr  error // of the last try
}

// Outcome is what one try to deliver a payload means for it.
type Outcome int

const (
	OutcomeAccepted  Outcome = iota // the destination has it
	OutcomeNotYet                   // the destination certainly does not have it; retry
	OutcomeRefused                  // the destination does not have it and will not take it
	OutcomeNotWanted                // the destination takes no statistics
	OutcomeUnknown                  // the destination may have it
)

// Attempt is the result of one try.
type Attempt struct {
	Outcome  Outcome
	Err      error         // nil only if all was accepted; with OutcomeAccepted it can be a warning
	Silent   bool          // there was no answer
	After    time.Duration // how long the destination asked us to wait
	Rejected uint64        // spans of an accepted payload that the destination left out
	Clock    Clock         // the destination's, by its answer
}

// Clock is how far a destination's clock is ahead of ours, to within a second or so: an answer has whole
// seconds, taken some time before it is read. At is when it was read, zero if no answer had a time.
type Clock struct {
	Ahead time.Duration
	At    time.Time
}

// ClockOf reads the Date header of an answer that was read at now.
func ClockOf(date string, now time.Time) Clock {
	at, err := http.ParseTime(date)
	if err != nil {
		return Clock{}
	}
	return Clock{at.Sub(now), now}
}
