package admit

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"golang.org/x/sys/cpu"
)

// books count what became of the spans of all publishers. Each publisher adds to them
// once a batch or less.
type books struct {
	_          cpu.CacheLinePad
	received   atomic.Uint64
	_          cpu.CacheLinePad
	dropped    [drops]atomic.Uint64
	collapsed  [span.WholeKey + 1]atomic.Uint64
	common     atomic.Uint64 // spans counted under an origin that is not all of their own
	decoded    atomic.Uint64 // keys
	uncached   atomic.Uint64 // keys that were decoded and found no room in their publisher's table
	unnumbered atomic.Uint64 // definitions of keys that found no room
	normalised atomic.Uint64 // keys with a label that had to be changed
}

// entry is the spans of one batch, or of several that are admitted together, on their way
// into the books. Whoever begins one defers its end, so that the books balance also after
// a panic.
type entry struct {
	books     *books
	spans     uint64
	published uint64     // of the spans
	ignored   uint64     // of the rest
	reason    DropReason // of those that are not published at the end
}

// begin begins an entry of so many spans, none of which is published yet.
func (b *books) begin(spans uint64, reason DropReason) entry {
	return entry{books: b, spans: spans, reason: reason}
}

// end counts the spans as received, and what was not published as dropped. Received is
// counted last, so that at any moment no part of the books exceeds the whole for longer
// than what is admitted at a time.
func (e *entry) end() {
	if rest := e.spans - e.published - e.ignored; rest > 0 {
		e.books.dropped[e.reason].Add(rest)
	}
	if e.ignored > 0 {
		e.books.dropped[DropIgnored].Add(e.ignored)
	}
	e.books.received.Add(e.spans)
}

// refuse has spans that were not admitted dropped under the reason. What passes is no drop:
// they are refused, so that whoever sent them still has them.
func (e *entry) refuse(reason DropReason) {
	if e.reason = reason; reason.IsPassing() {
		e.spans = 0
	}
}

// collapse counts the spans that lost labels, by label.
func (b *books) collapse(spans *[span.WholeKey + 1]uint64) {
	for f, n := range spans {
		if n != 0 {
			b.collapsed[f].Add(n)
		}
	}
}

// fieldOrigin stands beside the labels for spans whose origin found no room.
const fieldOrigin = "origin"

// Stats is what the outside sees of all publishers. Every reason is present, also at 0.
type Stats struct {
	Received       uint64
	Dropped        map[string]uint64 // by reason
	Collapsed      map[string]uint64 // by field
	KeysDecoded    uint64
	KeysUncached   uint64
	KeysUnnumbered uint64
	KeysNormalised uint64
}

// DroppedTotal is the sum over all reasons.
func (s *Stats) DroppedTotal() (total uint64) {
	for _, n := range s.Dropped {
		total += n
	}
	return total
}

// stats reads the books without disturbing those who write them. Received is read last: a
// batch counts as received after it was published or dropped, so the parts never exceed
// the whole by a batch that is not in it yet.
func (b *books) stats() Stats {
	stats := Stats{
		KeysDecoded: b.decoded.Load(), KeysUncached: b.uncached.Load(),
		KeysUnnumbered: b.unnumbered.Load(), KeysNormalised: b.normalised.Load(),
		Dropped:   make(map[string]uint64, drops),
		Collapsed: make(map[string]uint64, span.WholeKey+2),
	}
	for d := admitted + 1; int(d) < drops; d++ {
		stats.Dropped[d.String()] = b.dropped[d].Load()
	}
	for f := range span.WholeKey + 1 {
		stats.Collapsed[span.Label(f).String()] = b.collapsed[f].Load()
	}
	stats.Collapsed[fieldOrigin] = b.common.Load()
	stats.Received = b.received.Load()
	return stats
}

// DropReason is why a batch that was received is not counted.
type DropReason uint8

const (
	admitted          DropReason = iota // it is counted
	DropRingFull                        // a ring has no room: the drainers can't keep up
	DropOverShare                       // its publisher has its share of a ring already, and there are others
	DropRingContended                   // too many publishers claim at once
	DropMalformed                       // the frame is not what the protocol says
	DropBatchTooLarge                   // more snapshots than MaxBatch, or than a ring has slots
	DropNotWanted                       // the agent does not take statistics
	DropRefused                         // behind what ended its connection, or on one that was refused
	DropShutdown                        // the last cycle is sealed
	DropLeftToAgent                     // of a trace that is forwarded for the agent to count
	DropIgnored                         // a rule of --ignore is about it
	DropBug                             // a defect of ours, contained

	drops = int(DropBug) + 1
)

var dropNames = [drops]string{
	"", "ring_full", "over_share", "ring_contended", "malformed", "batch_too_large",
	"not_wanted", "refused", "shutdown", "left_to_agent", "ignored", "bug",
}

// String is the reason's name in metrics.
func (d DropReason) String() string { return dropNames[d] }

// IsPassing reports whether the same spans may be admitted at another time, be it by the next
// daemon.
func (d DropReason) IsPassing() bool { return d.passes() || d == DropShutdown }

// passes reports whether the reason goes away by itself, as the drainers go on.
func (d DropReason) passes() bool {
	return d == DropRingFull || d == DropOverShare || d == DropRingContended
}
