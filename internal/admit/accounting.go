package admit

import (
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"golang.org/x/sys/cpu"
)

// totals counts the spans of all publishers by outcome. Each publisher updates it at most once
// per batch.
type totals struct {
	spans        flow
	values       flow
	collapsed    [span.WholeKey + 1]atomic.Uint64
	sharedOrigin atomic.Uint64 // spans counted in an origin that several processes share
	renamed      atomic.Uint64 // spans counted under another name than the client sent
	decoded      atomic.Uint64 // keys that were decoded
	uncached     atomic.Uint64 // decoded keys that did not fit in the key table
	unnumbered   atomic.Uint64 // key definitions that did not fit in the key table
	normalized   atomic.Uint64 // keys whose labels were normalized

	withoutObjective atomic.Uint64 // spans that a tracer has counted itself, so that a matching objective could not
	objectives       objectiveTotals
}

// objectiveTotals counts the spans of objectives in all cycles.
type objectiveTotals struct {
	mu     sync.Mutex
	counts slo.Counts
}

func (o *objectiveTotals) add(counts slo.Counts) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.counts.Add(counts)
}

// stats returns a copy of the counts of each objective.
func (o *objectiveTotals) stats(objectives *slo.List) (all []ObjectiveStats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, name := range objectives.Names() {
		all = append(all, ObjectiveStats{name, o.counts[i]})
	}
	return all
}

// ObjectiveStats is the name of a service level objective, and the number of spans that it has counted.
type ObjectiveStats struct {
	Name string
	slo.Count
}

// addObjectives adds spans that objectives count to a cycle, and to the totals.
func (s *Publishers) addObjectives(cycle *aggregate.Cycle, counts slo.Counts) {
	cycle.AddObjectives(counts)
	s.totals.objectives.add(counts)
}

// tally counts the spans of an entry, or their values, by outcome.
type tally struct {
	received  uint64
	published uint64
	ignored   uint64 // excluded by a rule of --ignore
}

// entry accounts for the spans of one batch, or of several that are admitted together, and for their values. Its
// creator must defer end, so that the totals balance even after a panic.
type entry struct {
	totals        *totals
	spans, values tally
	reason        DropReason // drop reason of all spans and values that are neither published nor ignored
}

// begin returns an entry that accounts for the given number of spans. When the entry ends, all spans
// that were neither published nor ignored are counted as dropped for the given reason.
func (t *totals) begin(spans uint64, reason DropReason) entry {
	return entry{totals: t, spans: tally{received: spans}, reason: reason}
}

// end adds the spans and values of the entry to the totals.
func (e *entry) end() {
	e.totals.spans.add(e.spans, e.reason)
	e.totals.values.add(e.values, e.reason)
}

// flow counts spans, or values, by outcome.
type flow struct {
	_        cpu.CacheLinePad
	received atomic.Uint64
	_        cpu.CacheLinePad
	dropped  [drops]atomic.Uint64
}

// add adds the counts of a tally to those of f. Spans or values that were neither published nor ignored are counted as
// dropped for the given reason.
func (f *flow) add(t tally, reason DropReason) {
	if t.received == 0 {
		return
	}
	if dropped := t.received - t.published - t.ignored; dropped > 0 {
		f.dropped[reason].Add(dropped)
	}
	if t.ignored > 0 { // ignored spans are dropped, too, for a reason of their own
		f.dropped[DropIgnored].Add(t.ignored)
	}
	f.received.Add(t.received) // last: a goroutine that reads it can then also read the outcome of these spans
}

// droppedByReason returns a copy of the counters of dropped spans or values. It contains every reason, also those at 0.
func (f *flow) droppedByReason() map[string]uint64 {
	byReason := make(map[string]uint64, drops)
	for reason := notDropped + 1; int(reason) < drops; reason++ {
		byReason[reason.String()] = f.dropped[reason].Load()
	}
	return byReason
}

// refuse sets the reason why the spans of the entry are dropped. If a client can retry after this
// reason, the entry counts no spans at all, because the request is refused.
func (e *entry) refuse(reason DropReason) {
	e.reason = reason
	if reason.IsRetryable() {
		e.spans, e.values = tally{}, tally{}
	}
}

// addCollapsed adds the number of spans that lost a label, given by label.
func (t *totals) addCollapsed(spans *[span.WholeKey + 1]uint64) {
	for label, n := range spans {
		if n != 0 {
			t.collapsed[label].Add(n)
		}
	}
}

// collapsedOrigin is the key in Stats.Collapsed for spans whose origin did not fit in the interval, so that they are
// counted in an origin that several processes share.
const collapsedOrigin = "origin"

// Stats is a copy of the totals. Dropped and ValuesDropped contain every reason, also those at 0.
type Stats struct {
	Received       uint64
	Dropped        map[string]uint64 // spans by drop reason
	ValuesReceived uint64            // values of measures
	ValuesDropped  map[string]uint64 // values of measures by drop reason
	Collapsed      map[string]uint64 // spans by lost label
	Renamed        uint64            // spans counted under a name by convention
	// WithoutObjective is the number of spans that an objective did not count, because a tracer has counted them itself,
	// and the objective has a threshold.
	WithoutObjective uint64
	Objectives       []ObjectiveStats
	KeysDecoded      uint64
	KeysUncached     uint64
	KeysUnnumbered   uint64
	KeysNormalized   uint64
}

// DroppedTotal returns the sum over all drop reasons.
func (s *Stats) DroppedTotal() (total uint64) {
	for _, n := range s.Dropped {
		total += n
	}
	return total
}

// stats returns a copy of the totals. It reads them one by one without a lock, so a batch that ends
// during the call can be included in only some of them.
func (t *totals) stats() Stats {
	collapsed := map[string]uint64{collapsedOrigin: t.sharedOrigin.Load()}
	for label := range t.collapsed {
		collapsed[span.Label(label).String()] = t.collapsed[label].Load()
	}
	return Stats{
		Dropped:          t.spans.droppedByReason(),
		Received:         t.spans.received.Load(),
		ValuesDropped:    t.values.droppedByReason(),
		ValuesReceived:   t.values.received.Load(),
		Collapsed:        collapsed,
		Renamed:          t.renamed.Load(),
		WithoutObjective: t.withoutObjective.Load(),
		KeysDecoded:      t.decoded.Load(),
		KeysUncached:     t.uncached.Load(),
		KeysUnnumbered:   t.unnumbered.Load(),
		KeysNormalized:   t.normalized.Load(),
	}
}

// DropReason is the reason why received spans are not counted.
type DropReason uint8

const (
	notDropped        DropReason = iota // the batch is published
	DropRingFull                        // a ring is full: the drainers can't keep up
	DropOverShare                       // the publisher holds its share of a ring that others need too
	DropRingContended                   // too many publishers claimed slots at the same time
	DropMalformed                       // the message violates the protocol
	DropBatchTooLarge                   // the batch exceeds MaxBatch or the ring's size
	DropNotWanted                       // the agent does not accept statistics
	DropRefused                         // received on a refused connection, or after the message that ended the connection
	DropShutdown                        // the last cycle is sealed
	DropLeftToAgent                     // forwarded to the agent, which counts the spans
	DropIgnored                         // matched by a rule of --ignore
	DropBug                             // an internal error, such as a recovered panic

	drops = int(DropBug) + 1
)

var dropNames = [drops]string{
	"", "ring_full", "over_share", "ring_contended", "malformed", "batch_too_large",
	"not_wanted", "refused", "shutdown", "left_to_agent", "ignored", "bug",
}

// String returns the reason's name in metrics.
func (d DropReason) String() string { return dropNames[d] }

// IsRetryable reports whether a client should send the spans again. After DropShutdown, the daemon that replaces this
// one can count them.
func (d DropReason) IsRetryable() bool { return d.isTransient() || d == DropShutdown }

// isTransient reports whether publishing the spans can succeed soon, after the drainers, which read the
// rings, have freed slots.
func (d DropReason) isTransient() bool {
	switch d {
	case DropRingFull, DropOverShare, DropRingContended:
		return true
	default:
		return false
	}
}
