package export

import (
	"context"
	"net/http"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Exporter describes a destination: its name, its requirements, and how it gets statistics. Either
// Push or Pull is set. For most destinations, all other fields can be zero.
type Exporter struct {
	Name string // name in metrics, the log and status
	URL  string // URL for operators, without credentials

	Push Push  // encodes and sends statistics
	Pull *Pull // publishes statistics to be scraped

	// InOrder causes payloads to be sent one at a time, in order of creation, for destinations that
	// reject data older than the last.
	InOrder bool

	// Cumulative means that payloads contain running totals: everything counted since a series began. Then
	// cycles without spans are sent as well, a newer cycle's payloads replace queued ones, and a payload
	// can be sent twice. It requires InOrder.
	Cumulative bool

	// Bounds are the upper bounds of classic histogram buckets in seconds; optional. sketch.CheckBounds
	// accepts them, and those of all destinations together.
	Bounds []float64

	// Metrics is the number of metrics whose series are kept as running totals; 0 is 1.
	Metrics int

	// HasValues reports whether the destination also gets the values of measures.
	HasValues bool

	// HasObjectives reports whether the destination gets the totals of objectives, also after cycles without spans.
	HasObjectives bool

	// GraphMemory returns the maximum memory of the service graph, given the limits of running totals. It is nil
	// without one. The edges are running totals in any case, so cycles without spans are sent as well.
	GraphMemory func(totals.Limits) int

	// LimitTotals sets the limits of running totals. It is called before the first cycle. It is nil if
	// there are no running totals.
	LimitTotals func(totals.Limits)

	// AcceptsStatistics reports whether the destination currently accepts statistics. If nil, it always does.
	AcceptsStatistics func() bool

	// PayloadLimit returns the maximum length of a payload that the destination has reported, or 0 if it has
	// reported none. It is nil for destinations that report none.
	PayloadLimit func() int

	// Discovered reports whether an auto-discovered destination has been found. Until then no spans are
	// pending for it. It never becomes false again. It is nil for configured destinations.
	Discovered func() bool

	// Watch probes the destination while no payloads are sent. It runs until its context ends. It is
	// nil for destinations that are not probed.
	Watch func(ctx context.Context, link *Link)
}

// Push encodes statistics for a destination and sends them.
type Push interface {
	// Encode encodes a cycle as payloads, none longer than its limit, and passes each to emit as soon as
	// it is complete, to save memory. It runs on the sealing goroutine, so it must not wait. It retains
	// nothing of the cycle except strings.
	Encode(c *Cycle, emit func(*Payload)) Encoded

	// Deliver makes one attempt to deliver a payload, and returns soon after its context ends. Unless
	// the exporter is InOrder, it is called concurrently for payloads of different origins.
	Deliver(ctx context.Context, p *Payload) Attempt
}

// Pull publishes statistics that are scraped.
type Pull struct {
	// Publish adds a cycle to the scraped statistics. It runs on the sealing goroutine, like Push.Encode.
	Publish func(c *Cycle) Encoded

	// Scrapes tracks scrapes.
	Scrapes *Scrapes
}

// Cycle contains the counts of one export interval while they are encoded.
type Cycle struct {
	*aggregate.Sealed
	Rows []Row // those of spans first, then those of values of measures
	// Limit is the maximum length of a payload.
	Limit int
	// Number numbers the running totals after the cycle. All spans of cycles with a number below
	// FirstUndelivered have been delivered, or never will be. Only destinations of running totals have them.
	Number, FirstUndelivered uint64

	amount    Amount
	mergeTime time.Duration // time that merging the rows took
	state     *cycleState
}

// Encoded is the result of encoding one export interval, in addition to the payloads.
type Encoded struct {
	Unencodable       uint64      // spans that could not be encoded
	UnencodableValues uint64      // values of measures that could not be encoded
	Totals            TotalsStats // only for exporters with running totals
}

// lost returns the amount that could not be encoded.
func (e *Encoded) lost() Amount { return Amount{e.Unencodable, e.UnencodableValues} }

// TotalsStats counts the running totals of an exporter.
type TotalsStats struct {
	Series     int    // current number
	Ended      uint64 // series that ended
	Overflowed uint64 // spans, and values of measures, counted in an overflow series

	Edges           int    // current number of edges of the service graph
	EdgesOverflowed uint64 // spans counted in the overflow edge
}

// SpanRows returns the rows of spans, without those of values.
func (c *Cycle) SpanRows() []Row {
	for i := range c.Rows {
		if c.Rows[i].Key().Measure != 0 {
			return c.Rows[:i]
		}
	}
	return c.Rows
}

// Amount is a number of spans, and of values of measures, which are not spans.
type Amount struct{ Spans, Values uint64 }

// plus returns the sum of two amounts.
func (a Amount) plus(b Amount) Amount { return Amount{a.Spans + b.Spans, a.Values + b.Values} }

// minus returns a without b, which must not be larger.
func (a Amount) minus(b Amount) Amount { return Amount{a.Spans - b.Spans, a.Values - b.Values} }

// atMost returns the smaller number of spans, and the smaller number of values.
func (a Amount) atMost(b Amount) Amount {
	return Amount{min(a.Spans, b.Spans), min(a.Values, b.Values)}
}

// Payload is one encoded request.
type Payload struct {
	Origin span.Origin // origin of the spans; empty if there are several
	Body   []byte
	Spans  uint64 // 0 for running totals, whose spans are accounted per cycle
	Values uint64 // values of measures; 0 for running totals, like Spans

	// IsGraph is true if the payload contains only edges of the service graph. A newer one replaces it.
	IsGraph bool

	// Undelivered has, for each series of running totals in the payload that is not fully delivered, the
	// number of spans that the destination may lack.
	Undelivered []uint64

	sequence     uint64 // number in the order of creation, from 0
	created      time.Time
	cycle        *cycleState
	snapshot     *snapshot // the snapshot that it is part of; nil for deltas
	historyEntry *Flush    // history entry of the cycle
	tries        int
	lastErr      error // error of the last attempt
}

// HasRunningTotals reports whether the payload contains running totals, whose spans and values are accounted per cycle.
func (p *Payload) HasRunningTotals() bool { return p.amount() == (Amount{}) }

func (p *Payload) amount() Amount { return Amount{p.Spans, p.Values} }

// undeliveredSpans returns the maximum number of spans in the payload that the destination may lack, for a payload of
// running totals.
func (p *Payload) undeliveredSpans() (sum uint64) {
	for _, spans := range p.Undelivered {
		sum += spans
	}
	return sum
}

// canBeSentTwice reports whether the payload contains running totals. If running totals arrive twice, receivers count
// no span twice.
func (p *Payload) canBeSentTwice() bool {
	isPartOfSnapshot := p.snapshot != nil // running totals of spans
	return isPartOfSnapshot || p.IsGraph  // edges are running totals, too
}

// Outcome is the result of one attempt to deliver a payload.
type Outcome int

const (
	OutcomeAccepted  Outcome = iota // the destination has it
	OutcomeNotYet                   // the destination does not have it; retry
	OutcomeRefused                  // the destination does not have it, and will never accept it
	OutcomeNotWanted                // the destination does not accept statistics
	OutcomeUnknown                  // the destination may have it
)

// Attempt describes the result of one attempt.
type Attempt struct {
	Outcome  Outcome
	Err      error         // with OutcomeAccepted: a warning, or the reason for Rejected
	Silent   bool          // there was no response
	After    time.Duration // delay that the destination requested
	Rejected uint64        // spans of an accepted payload that the destination rejected
	Clock    Clock         // the destination's clock, from the response
}

// Clock is the difference between the clocks of a destination and of this machine, accurate to about a second,
// because responses contain whole seconds and are read some time later.
type Clock struct {
	Ahead time.Duration // positive if the destination's clock is ahead
	At    time.Time     // time when the response was read; zero if no response contained a time
}

// ClockOf compares the clock of a destination with the local clock. date is the Date header of a response that was
// read at the local time now. It returns the zero Clock if date is not a valid time.
func ClockOf(date string, now time.Time) Clock {
	responseTime, err := http.ParseTime(date)
	if err != nil {
		return Clock{}
	}
	return Clock{Ahead: responseTime.Sub(now), At: now}
}
