package export

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/logging/ratelog"
)

// Reason names why spans that were aggregated did not reach a destination.
type Reason string

const (
	Rejected    Reason = "rejected"    // the destination answered that it will not take them
	NotWanted   Reason = "not_wanted"  // the destination takes no statistics
	Ambiguous   Reason = "ambiguous"   // written completely, never answered
	Expired     Reason = "expired"     // waited longer than the retry age, or than their running total lasts
	QueueFull   Reason = "queue_full"  // the oldest, when too much waited, or too many running totals
	Shutdown    Reason = "shutdown"    // still waiting when the daemon ended
	Unencodable Reason = "unencodable" // fits in no payload
)

// Reasons are all of them, so that each can be shown from the start at 0.
var Reasons = []Reason{Rejected, NotWanted, Ambiguous, Expired, QueueFull, Shutdown, Unencodable}

// Result names what became of a payload. All except Retried are final, and a payload has one final result;
// Retried counts tries that are followed by another.
type Result string

const (
	ResultAccepted   Result = "accepted"
	ResultRetried    Result = "retried"
	ResultRejected   Result = "rejected"
	ResultNotWanted  Result = "not_wanted"
	ResultAmbiguous  Result = "ambiguous"
	ResultGivenUp    Result = "given_up"   // expired, queue_full or shutdown
	ResultSuperseded Result = "superseded" // running totals that a newer payload has too
)

// Results are all of them.
var Results = []Result{
	ResultAccepted, ResultRetried, ResultRejected, ResultNotWanted, ResultAmbiguous, ResultGivenUp,
	ResultSuperseded,
}

// result is the payload's final result if its spans are unsent for r.
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

// Stats is one consistent reading of a destination: at any moment each span that was ever accepted is in
// exactly one of Flushed, Unsent, Held and BeforeFound.
type Stats struct {
	Flushed  uint64            // spans in payloads that the destination accepted, or that can be scraped
	Unsent   map[Reason]uint64 // spans that will never be delivered
	Held     uint64            // spans in payloads without an outcome
	Payloads map[Result]uint64

	LookedFor   bool   // an auto-discovered destination that is not found yet
	BeforeFound uint64 // spans of cycles sealed before it was found: they are not sent to it, and are no loss

	QueuePayloads int // waiting; those in flight are not among them
	QueueBytes    int
	QueueMaxBytes int
	OldestAge     time.Duration // of the payloads without an outcome; 0 if there are none
	MaxAge        time.Duration // at which a waiting payload is abandoned

	Reachable bool // the destination answered the last request, a payload or a question
	Takes     bool // it takes statistics, and accepted the last payload that it was offered, if any

	Clock Clock // of the last answer to a payload that had a time

	PayloadBytes Histogram // of each payload made
	Totals       TotalsStats
}

// State is the condition of a destination, in one word.
type State string

const (
	LookedFor State = "looked_for" // not found yet
	Silent    State = "silent"     // it did not answer the last request
	Answers   State = "answers"    // and does not accept payloads
	Takes     State = "takes"      // it accepted the last payload, or was offered none yet
)

// State is the condition of the destination.
func (s *Stats) State() State {
	switch {
	case s.LookedFor:
		return LookedFor
	case !s.Reachable:
		return Silent
	case !s.Takes:
		return Answers
	}
	return Takes
}

// Histogram counts values at or below each bound, and above the last.
type Histogram struct {
	Bounds []float64
	Counts []uint64 // one more than Bounds; not cumulative
	Sum    float64
}

// Count is the number of values.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

func newHistogram(bounds ...float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) observe(v float64) {
	at, _ := slices.BinarySearch(h.Bounds, v)
	h.Counts[at]++
	h.Sum += v
}

func (h Histogram) clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// keptFlushes is how many flushes are kept: about three minutes at the default interval.
const keptFlushes = 20

// Flush is what became of one sealed cycle with spans, at one destination.
type Flush struct {
	Cycle         uint64         `json:"cycle"`
	Start         time.Time      `json:"start"`
	Sealed        time.Time      `json:"sealed"`
	Spans         uint64         `json:"spans"`
	EncodeSeconds float64        `json:"encode_seconds"` // to merge and encode
	Payloads      int            `json:"payloads"`
	Bytes         int            `json:"bytes"`
	Tries         int            `json:"tries"`                       // requests that were made for them
	Pending       int            `json:"pending"`                     // payloads without an outcome yet
	Outcomes      map[Result]int `json:"outcomes"`                    // of the others
	SettleSeconds float64        `json:"settle_seconds"`              // from the seal to the last outcome
	Said          string         `json:"said,omitempty"`              // the destination's last error
	Unencodable   uint64         `json:"unencodable_spans,omitempty"` // that fit in no payload
}

// statsRecorder has the stats and the last flushes of a destination. All changes go through one lock: there
// are a few per payload, and a reader must never see a span twice or not at all.
type statsRecorder struct {
	mu    sync.Mutex
	stats Stats
	last  []*Flush // oldest first
}

func newStatsRecorder() *statsRecorder {
	r := &statsRecorder{stats: Stats{
		Unsent:       map[Reason]uint64{},
		Payloads:     map[Result]uint64{},
		PayloadBytes: newHistogram(1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20, 4<<20, 16<<20),
	}}
	for _, reason := range Reasons {
		r.stats.Unsent[reason] = 0
	}
	for _, result := range Results {
		r.stats.Payloads[result] = 0
	}
	return r
}

func (r *statsRecorder) change(edit func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(&r.stats)
}

// hold adds spans that the destination does not have yet.
func (r *statsRecorder) hold(spans uint64) { r.change(func(s *Stats) { s.Held += spans }) }

// unsent moves held spans to those that the destination will never have.
func (r *statsRecorder) unsent(reason Reason, spans uint64) {
	r.change(func(s *Stats) {
		s.Held -= spans
		s.Unsent[reason] += spans
	})
}

// delivered moves held spans to those that the destination has, except for some that it left out.
func (r *statsRecorder) delivered(spans, rejected uint64) {
	rejected = min(rejected, spans)
	r.change(func(s *Stats) {
		s.Held -= spans
		s.Flushed += spans - rejected
		s.Unsent[Rejected] += rejected
	})
}

// beginFlush adds a sealed cycle, in place of the oldest if there are enough.
func (r *statsRecorder) beginFlush(c *Cycle) *Flush {
	f := &Flush{Cycle: c.Cycle, Start: c.Start, Sealed: c.End, Spans: c.spans, Outcomes: map[Result]int{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.last) == keptFlushes {
		r.last = slices.Delete(r.last, 0, 1)
	}
	r.last = append(r.last, f)
	return f
}

func (r *statsRecorder) changeFlush(f *Flush, edit func(*Flush)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	edit(f)
}

// madePayload records a new payload.
func (r *statsRecorder) madePayload(p *Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.PayloadBytes.observe(float64(len(p.Body)))
	p.flush.Payloads++
	p.flush.Pending++
	p.flush.Bytes += len(p.Body)
}

// tried records an attempt to deliver a payload.
func (r *statsRecorder) tried(p *Payload, a Attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.flush.Tries++
	if a.Err != nil {
		p.flush.Said = a.Err.Error()
	}
	if !a.Clock.At.IsZero() {
		r.stats.Clock = a.Clock
	}
}

// endPayload records the final result of a payload.
func (r *statsRecorder) endPayload(p *Payload, result Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Payloads[result]++
	p.flush.Pending--
	p.flush.Outcomes[result]++
	p.flush.SettleSeconds = time.Since(p.flush.Sealed).Seconds()
}

// read copies the stats.
func (r *statsRecorder) read() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Unsent, s.Payloads = maps.Clone(s.Unsent), maps.Clone(s.Payloads)
	s.PayloadBytes = s.PayloadBytes.clone()
	return s
}

// flushes copies the last flushes, the newest first.
func (r *statsRecorder) flushes() []Flush {
	r.mu.Lock()
	defer r.mu.Unlock()
	flushes := make([]Flush, 0, len(r.last))
	for _, f := range slices.Backward(r.last) {
		seen := *f
		seen.Outcomes = maps.Clone(f.Outcomes)
		flushes = append(flushes, seen)
	}
	return flushes
}

// Link connects a destination with its exporter's Watch. Both sides can use it at any time, and neither
// waits for the other.
type Link struct {
	answers atomic.Bool // the last request was answered
	refuses atomic.Bool // the last payload was not accepted

	lost     chan struct{} // holds a token when a payload was not answered
	returned chan struct{} // holds a token when the destination is back
}

func newLink() *Link {
	return &Link{lost: make(chan struct{}, 1), returned: make(chan struct{}, 1)}
}

// Answers records that the destination answered a question, even with a refusal.
func (l *Link) Answers() { l.answers.Store(true) }

// Silent records that it did not.
func (l *Link) Silent() { l.answers.Store(false) }

// Returned records that it answers after it had not: waiting payloads can go. Whether the destination
// accepts them is not known yet.
func (l *Link) Returned() {
	l.answers.Store(true)
	l.refuses.Store(false)
	notify(l.returned)
}

// Lost receives when a payload was not answered, and the request before it was.
func (l *Link) Lost() <-chan struct{} { return l.lost }

// tried records whether an attempt was answered, and accepted. That a destination wants no statistics is
// known from its exporter.
func (l *Link) tried(a Attempt) {
	if a.Outcome != OutcomeNotWanted {
		l.refuses.Store(a.Outcome != OutcomeAccepted)
	}
	if answered := l.answers.Swap(!a.Silent); answered && a.Silent {
		notify(l.lost)
	}
}

// notify leaves a token in c, unless one is there already.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// How often the log has a line about the outcomes of one kind, if a destination accepts some payloads and
// not others, and about a warning that comes with each payload that it accepts.
const (
	logInterval     = 10 * time.Second
	warningInterval = time.Hour
)

// outcomeLog writes one line when the outcome of attempts changes, however long it stays the same.
type outcomeLog struct {
	log, warnings *slog.Logger
	name          string // of the destination
	isCumulative  bool   // a payload that is not accepted is repeated by the next

	last     outcomeKind // of the sender
	isLosing atomic.Bool // a line about lost spans was written since the last success
}

// outcomeKind is what the log tells apart.
type outcomeKind struct {
	outcome            Outcome
	isSilent, isPartly bool
}

func newOutcomeLog(log *slog.Logger, x Exporter) *outcomeLog {
	return &outcomeLog{
		log: ratelog.New(log, logInterval, ""), warnings: ratelog.New(log, warningInterval, ""),
		name: x.Name, isCumulative: x.Cumulative,
	}
}

// tried logs the result of an attempt, with how many payloads wait and spans are held.
func (l *outcomeLog) tried(a Attempt, waiting int, held uint64) {
	now := outcomeKind{a.Outcome, a.Silent, a.Rejected > 0}
	if now == (outcomeKind{}) && a.Err != nil {
		l.warnings.Warn(l.name+" accepts payloads with a warning", "warning", a.Err)
	}
	if now == l.last {
		return
	}
	l.last = now
	switch a.Outcome {
	case OutcomeAccepted:
		if now.isPartly {
			l.log.Error(l.name+" leaves out a part of payloads; its spans are lost", "error", a.Err)
			return
		}
		l.isLosing.Store(false)
		l.log.Info(l.name+" takes payloads again", "waiting_payloads", waiting, "held_spans", held)
	case OutcomeNotYet:
		if a.Silent {
			l.log.Warn(l.name+" cannot be reached; payloads are kept and tried again", "error", a.Err)
		} else {
			l.log.Warn(l.name+" answers and does not take payloads; they are kept and tried again",
				"error", a.Err)
		}
	case OutcomeRefused:
		if l.isCumulative {
			l.log.Error(l.name+" rejects payloads; their spans are held for the next", "error", a.Err)
			return
		}
		l.log.Error(l.name+" rejects payloads; their spans are lost", "error", a.Err)
	case OutcomeUnknown:
		l.log.Warn(l.name+" did not answer; whether it counted the payload is unknown", "error", a.Err)
	case OutcomeNotWanted: // its exporter logs it, once
	}
}

// lost logs an abandoned payload. The tries that caused it may be long past, so the first loss of an outage
// has a line of its own.
func (l *outcomeLog) lost(reason Reason, p *Payload) {
	if reason.result() == ResultGivenUp && !l.isLosing.Swap(true) {
		l.log.Warn("giving up payloads until the "+l.name+" takes them again",
			"reason", string(reason), "spans", p.Spans, "tries", p.tries, "error", p.lastErr)
	}
}
