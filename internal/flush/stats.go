package flush

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Stats is one consistent look at a destination: at any moment each span that
// was ever accepted is in exactly one of Flushed, Unsent, Held and BeforeFound.
type Stats struct {
	Flushed  uint64            // spans in payloads that the destination accepted
	Unsent   map[Reason]uint64 // spans that will never be
	Held     uint64            // spans in payloads without an outcome
	Payloads map[Result]uint64

	LookedFor   bool   // nobody named the destination, and it is not found yet
	BeforeFound uint64 // spans of cycles that were sealed by then: it is not sent them, and they are no loss

	QueuePayloads int // that wait; those under way are not among them
	QueueBytes    int
	QueueMaxBytes int
	OldestAge     time.Duration // of the payloads without an outcome; 0 where there is none
	MaxAge        time.Duration // when one that waits is given up

	Reachable bool // the destination answered the last request, a payload or a question
	Takes     bool // it takes statistics, and took the last payload that it was offered, if any

	Clock Clock // of the last answer to a payload that said a time

	PayloadBytes Histogram // of each payload made
	Totals       TotalsStats
}

// State is how a destination does, in one word.
type State string

const (
	LookedFor State = "looked_for" // it is no destination yet

	Silent  State = "silent"  // it did not answer the last request
	Answers State = "answers" // and does not take payloads
	Takes   State = "takes"   // it took the last payload, or was offered none yet
)

// State is how the destination does.
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

// books count spans and payloads. All changes go through one lock: there are a
// few a payload, and a reader must never see a span twice or not at all.
type books struct {
	mu    sync.Mutex
	stats Stats
}

func newBooks() *books {
	b := &books{stats: Stats{
		Unsent:       map[Reason]uint64{},
		Payloads:     map[Result]uint64{},
		PayloadBytes: newHistogram(1<<10, 4<<10, 16<<10, 64<<10, 256<<10, 1<<20, 4<<20, 16<<20),
	}}
	for _, reason := range Reasons {
		b.stats.Unsent[reason] = 0
	}
	for _, result := range Results {
		b.stats.Payloads[result] = 0
	}
	return b
}

// hold takes spans over.
func (b *books) hold(spans uint64) { b.change(func(s *Stats) { s.Held += spans }) }

// change makes one change of the books.
func (b *books) change(edit func(*Stats)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit(&b.stats)
}

// unsent moves spans to what the destination will never have.
func (b *books) unsent(reason Reason, spans uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stats.Held -= spans
	b.stats.Unsent[reason] += spans
}

// look copies everything.
func (b *books) look() Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	s.Unsent, s.Payloads = maps.Clone(s.Unsent), maps.Clone(s.Payloads)
	s.PayloadBytes = s.PayloadBytes.clone()
	return s
}
