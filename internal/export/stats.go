package export

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Reason names why spans that were aggregated did not reach a destination.
type Reason string

const (
	Rejected    Reason = "rejected"    // the destination rejected them
	NotWanted   Reason = "not_wanted"  // the destination does not accept statistics
	Ambiguous   Reason = "ambiguous"   // sent completely, but not answered
	Expired     Reason = "expired"     // waited longer than the retry age
	QueueFull   Reason = "queue_full"  // evicted from the queue
	Shutdown    Reason = "shutdown"    // still waiting at shutdown
	Unencodable Reason = "unencodable" // too large for a payload
)

// Reasons contains all reasons, so that each can be exported as 0 from the start.
var Reasons = []Reason{Rejected, NotWanted, Ambiguous, Expired, QueueFull, Shutdown, Unencodable}

// Result is the outcome of a payload in metrics. Retried counts failed attempts that are followed
// by another; all others are final, and each payload has one of them.
type Result string

const (
	ResultAccepted   Result = "accepted"
	ResultRetried    Result = "retried"
	ResultRejected   Result = "rejected"
	ResultNotWanted  Result = "not_wanted"
	ResultAmbiguous  Result = "ambiguous"
	ResultGivenUp    Result = "given_up"   // expired, queue_full or shutdown
	ResultSuperseded Result = "superseded" // running totals that a newer payload contains, too
)

// Results contains all results.
var Results = []Result{
	ResultAccepted, ResultRetried, ResultRejected, ResultNotWanted, ResultAmbiguous, ResultGivenUp,
	ResultSuperseded,
}

// result returns the result to count for a payload whose spans were not delivered for the reason r. For example, it
// is ResultGivenUp for a payload that has expired.
func (r Reason) result() Result {
	switch r {
	case Rejected:
		return ResultRejected
	case NotWanted:
		return ResultNotWanted
	case Ambiguous:
		return ResultAmbiguous
	}
	return ResultGivenUp
}

// Stats is a consistent snapshot of a destination's counters: each accepted span is in exactly one
// of Flushed, Unsent, Pending and BeforeDiscovery.
type Stats struct {
	Flushed  uint64            // spans in payloads that the destination accepted, or that it scraped
	Unsent   map[Reason]uint64 // spans that will never be delivered
	Pending  uint64            // spans in payloads without an outcome
	Values   ValueStats
	Payloads map[Result]uint64

	IsDiscovering   bool   // auto-discovered, and not found yet
	BeforeDiscovery uint64 // spans sealed before it was found, which are neither sent nor lost

	QueuePayloads int // waiting payloads, without those in flight
	QueueBytes    int
	QueueMaxBytes int
	OldestAge     time.Duration // age of the oldest payload without an outcome, or 0
	MaxAge        time.Duration // age at which a waiting payload is abandoned

	Reachable   bool // the destination answered the last payload or probe
	IsAccepting bool // it accepts statistics, and accepted the last payload, if any

	Clock Clock // clock from the last response to a payload that contained a time

	PayloadBytes Histogram // length of each payload
	Totals       TotalsStats
}

// ValueStats is the accounting of the values of measures at a destination: each value that was aggregated and sealed is
// in exactly one of its fields.
type ValueStats struct {
	Flushed uint64
	Unsent  map[Reason]uint64
	Pending uint64

	Expected bool // the destination gets values; otherwise all fields stay 0
}

// State is the state of a destination, in one word.
type State string

const (
	StateDiscovering State = "discovering" // auto-discovered, and not found yet
	StateUnreachable State = "unreachable" // did not answer the last request
	StateRejecting   State = "rejecting"   // answers requests, but does not accept payloads
	StateAccepting   State = "accepting"   // accepted the last payload, if any
)

// State returns the state of the destination according to its last response.
func (s *Stats) State() State {
	switch {
	case s.IsDiscovering:
		return StateDiscovering
	case !s.Reachable:
		return StateUnreachable
	case !s.IsAccepting:
		return StateRejecting
	}
	return StateAccepting
}

// Histogram counts the values at or below each bound, and above the last.
type Histogram struct {
	Bounds []float64
	Counts []uint64 // one more than Bounds; not cumulative
	Sum    float64
}

// Count returns the number of values.
func (h Histogram) Count() (values uint64) {
	for _, count := range h.Counts {
		values += count
	}
	return values
}

func newHistogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// observe counts one value.
func (h *Histogram) observe(value float64) {
	bucket, _ := slices.BinarySearch(h.Bounds, value)
	h.Counts[bucket]++
	h.Sum += value
}

func (h Histogram) clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// maxFlushes is the maximum length of the history: about three minutes at the default interval.
const maxFlushes = 20

// Flush is the history entry of one sealed cycle with spans, at one destination.
type Flush struct {
	Cycle         uint64         `json:"cycle"`
	Start         time.Time      `json:"start"`
	Sealed        time.Time      `json:"sealed"`
	Spans         uint64         `json:"spans"`
	EncodeSeconds float64        `json:"encode_seconds"` // time to merge and encode
	Payloads      int            `json:"payloads"`
	Bytes         int            `json:"bytes"`
	Tries         int            `json:"tries"`                       // requests made
	Pending       int            `json:"pending"`                     // payloads without an outcome
	Outcomes      map[Result]int `json:"outcomes"`                    // results of the other payloads
	SettleSeconds float64        `json:"settle_seconds"`              // seconds from the seal to the last outcome
	LastError     string         `json:"last_error,omitempty"`        // last error
	Unencodable   uint64         `json:"unencodable_spans,omitempty"` // spans that are too large for a payload
}

// statsRecorder maintains the stats and the history of a destination. One lock guards all of them:
// there are few changes per payload, and a reader must never see a span twice or not at all.
type statsRecorder struct {
	hasValues bool // the destination gets the values of measures

	mu      sync.Mutex
	stats   Stats
	history []*Flush // oldest first
}

// newStatsRecorder returns an empty recorder. All reasons and results are present with a count of 0,
// so that their metrics exist from the start.
func newStatsRecorder(hasValues bool) *statsRecorder {
	r := &statsRecorder{hasValues: hasValues, stats: Stats{
		Values:       ValueStats{Unsent: map[Reason]uint64{}, Expected: hasValues},
		Unsent:       map[Reason]uint64{},
		Payloads:     map[Result]uint64{},
		PayloadBytes: newHistogram(1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20, 4<<20, 16<<20),
	}}
	for _, reason := range Reasons {
		r.stats.Unsent[reason] = 0
		r.stats.Values.Unsent[reason] = 0
	}
	for _, result := range Results {
		r.stats.Payloads[result] = 0
	}
	return r
}

// change changes the stats with edit, under the lock.
func (r *statsRecorder) change(edit func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(&r.stats)
}

// recordSealed counts the spans and values of a new export interval as pending. It counts discarded ones as unsent:
// the daemon has discarded them because no destination wanted statistics.
func (r *statsRecorder) recordSealed(pending, discarded Amount) {
	r.change(func(s *Stats) {
		s.Pending += pending.Spans
		s.Unsent[NotWanted] += discarded.Spans
		if r.hasValues {
			s.Values.Pending += pending.Values
			s.Values.Unsent[NotWanted] += discarded.Values
		}
	})
}

// recordUnsent counts pending spans and values as unsent for the given reason: they will never be delivered.
func (r *statsRecorder) recordUnsent(reason Reason, unsent Amount) {
	r.change(func(s *Stats) {
		s.Pending -= unsent.Spans
		s.Unsent[reason] += unsent.Spans
		if r.hasValues {
			s.Values.Pending -= unsent.Values
			s.Values.Unsent[reason] += unsent.Values
		}
	})
}

// recordDelivered counts spans and values that were pending as flushed, except for those that the destination has
// rejected, which it counts as unsent. The destination does not report how many of the rejected ones are spans, and how
// many are values. So recordDelivered assumes the maximum for both.
func (r *statsRecorder) recordDelivered(delivered Amount, rejected uint64) {
	rejectedSpans := min(rejected, delivered.Spans)
	rejectedValues := min(rejected, delivered.Values)
	r.change(func(s *Stats) {
		s.Pending -= delivered.Spans
		s.Flushed += delivered.Spans - rejectedSpans
		s.Unsent[Rejected] += rejectedSpans
		if r.hasValues {
			s.Values.Pending -= delivered.Values
			s.Values.Flushed += delivered.Values - rejectedValues
			s.Values.Unsent[Rejected] += rejectedValues
		}
	})
}

// addToHistory adds an entry for a cycle, one export interval, to the history, and returns the entry. It removes the
// oldest entry if the history has its maximum length.
func (r *statsRecorder) addToHistory(c *Cycle) *Flush {
	f := &Flush{Cycle: c.Cycle, Start: c.Start, Sealed: c.End, Spans: c.amount.Spans, Outcomes: map[Result]int{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.history) == maxFlushes {
		r.history = slices.Delete(r.history, 0, 1)
	}
	r.history = append(r.history, f)
	return f
}

// recordEncoded records the result of encoding an export interval in its history entry and in the stats. encodeTime
// is how long merging and encoding took.
func (r *statsRecorder) recordEncoded(entry *Flush, result Encoded, encodeTime time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry.Unencodable = result.Unencodable
	entry.EncodeSeconds = encodeTime.Seconds()
	r.stats.Totals = result.Totals
}

// changeEntry changes an entry of the history with edit, under the lock that also guards the stats.
func (r *statsRecorder) changeEntry(f *Flush, edit func(*Flush)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(f)
}

// recordPayload counts a new payload, also in the history entry of its cycle.
func (r *statsRecorder) recordPayload(p *Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.PayloadBytes.observe(float64(len(p.Body)))
	p.historyEntry.Payloads++
	p.historyEntry.Pending++
	p.historyEntry.Bytes += len(p.Body)
}

// recordAttempt records an attempt to deliver a payload in the history: the number of attempts, and the last error. It
// also records the destination's clock, if the response contained a time.
func (r *statsRecorder) recordAttempt(p *Payload, a Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.historyEntry.Tries++
	if a.Err != nil {
		p.historyEntry.LastError = a.Err.Error()
	}
	hasTime := !a.Clock.At.IsZero()
	if hasTime {
		r.stats.Clock = a.Clock
	}
}

// recordResult counts the final result of a payload, also in the history entry of its cycle.
func (r *statsRecorder) recordResult(p *Payload, result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Payloads[result]++
	p.historyEntry.Pending--
	p.historyEntry.Outcomes[result]++
	p.historyEntry.SettleSeconds = time.Since(p.historyEntry.Sealed).Seconds()
}

// read returns a copy of the stats.
func (r *statsRecorder) read() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	stats.Unsent = maps.Clone(stats.Unsent)
	stats.Values.Unsent = maps.Clone(stats.Values.Unsent)
	stats.Payloads = maps.Clone(stats.Payloads)
	stats.PayloadBytes = stats.PayloadBytes.clone()
	return stats
}

// flushes returns a copy of the history, newest first.
func (r *statsRecorder) flushes() []Flush {
	r.mu.Lock()
	defer r.mu.Unlock()
	flushes := make([]Flush, 0, len(r.history))
	for _, f := range slices.Backward(r.history) {
		entry := *f
		entry.Outcomes = maps.Clone(f.Outcomes)
		flushes = append(flushes, entry)
	}
	return flushes
}
