package flush

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// keptFlushes is how many of the last flushes are kept: some three
// minutes of them at the usual interval.
const keptFlushes = 20

// Flush is what became of one sealed cycle that held spans, for one destination.
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
	Said          string         `json:"said,omitempty"`              // why not yes, by the destination
	Unencodable   uint64         `json:"unencodable_spans,omitempty"` // that fit in no payload
}

// history keeps the last flushes. The goroutine that accepts adds one, the
// sender notes outcomes, anybody looks; there are a few changes a payload, so
// one lock guards all of it.
type history struct {
	mu      sync.Mutex
	flushes []*Flush // oldest first
}

// begin adds a sealed cycle, in place of the oldest where there are enough.
func (h *history) begin(sealed *aggregate.Sealed, spans uint64) *Flush {
	f := &Flush{
		Cycle: sealed.Cycle, Start: sealed.Start, Sealed: sealed.End,
		Spans: spans, Outcomes: map[Result]int{},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.flushes) == keptFlushes {
		h.flushes = slices.Delete(h.flushes, 0, 1)
	}
	h.flushes = append(h.flushes, f)
	return f
}

// change makes one change of a flush that was begun.
func (h *history) change(f *Flush, edit func(*Flush)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	edit(f)
}

// resolved notes the final result of one payload.
func (h *history) resolved(f *Flush, result Result) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.Pending--
	f.Outcomes[result]++
	f.SettleSeconds = time.Since(f.Sealed).Seconds()
}

// look copies all of it, the newest first.
func (h *history) look() []Flush {
	h.mu.Lock()
	defer h.mu.Unlock()
	flushes := make([]Flush, 0, len(h.flushes))
	for _, f := range slices.Backward(h.flushes) {
		seen := *f
		seen.Outcomes = maps.Clone(f.Outcomes)
		flushes = append(flushes, seen)
	}
	return flushes
}
