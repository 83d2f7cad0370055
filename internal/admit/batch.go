package admit

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// batch is the scratch of one publisher for the batch that it is admitting.
type batch struct {
	slots        []aggregate.Slot
	hashes       []uint32 // of the keys of those that count, in their order
	drainers     []uint16 // by slot; nowhere for a span that is ignored
	runs         []run    // by drainer
	isResolved   bool     // slots, hashes, drainers and runs are those of the batch
	cycle        uint64   // that it is resolved in
	ignored      int      // spans
	shared       int      // spans that count and are marked as span.SharedOrigin
	collapsed    [span.WholeKey + 1]uint64
	hasCollapsed bool
}

// run is the part of a batch that goes to one drainer.
type run struct {
	slots  int
	filled int // of them
	claim  ring.Claim[aggregate.Slot]
}

// reset empties the batch and makes room for so many slots.
func (b *batch) reset(n int) {
	if cap(b.slots) < n {
		b.slots, b.hashes, b.drainers = make([]aggregate.Slot, n), make([]uint32, n), make([]uint16, n)
	}
	b.slots, b.hashes, b.drainers = b.slots[:n], b.hashes[:n], b.drainers[:n]
	clear(b.runs)
	b.ignored, b.shared = 0, 0
	if b.hasCollapsed {
		b.collapsed, b.hasCollapsed = [span.WholeKey + 1]uint64{}, false
	}
}

func (b *batch) isResolvedIn(cycle uint64) bool { return b.isResolved && b.cycle == cycle }

// nowhere is no drainer's number: there are fewer.
const nowhere = math.MaxUint16

// ignore leaves a span out of what is published.
func (b *batch) ignore(at int) {
	b.slots[at], b.drainers[at] = aggregate.Slot{Key: ignoredKey}, nowhere
	b.ignored++
}

// trim lets go of room that only a batch of more than so many spans needs.
func (b *batch) trim(most int) {
	if cap(b.slots) > most {
		b.slots, b.hashes, b.drainers = nil, nil, nil
	}
}

// collapse counts a span whose key lost labels.
func (b *batch) collapse(labels registry.LabelSet) {
	b.hasCollapsed = true
	for ; labels != 0; labels &= labels - 1 {
		b.collapsed[bits.TrailingZeros16(uint16(labels))]++
	}
}

// Why groups are not merged, beside what a cycle says of them.
var (
	ErrStopping       = errors.New("merge groups: the daemon stops")
	ErrNotWanted      = errors.New("merge groups: the agent takes no statistics")
	ErrTooManyOrigins = errors.New("merge groups: the interval has no room for one more origin")
)

// Merge adds groups that a tracer has counted itself, all or none of them. A
// group's hits are its spans in the books: received and aggregated at once, since
// no ring is in between.
//
// What it refuses is the tracer's count and not one of ours, so it is in no book;
// its caller hands it on to the agent as it came. It calls commit with the spans that it is about to
// add before it adds the first group, as PublishTogether does: what a panic leaves after that is
// dropped as a defect of ours. A group that is ignored is in the books, and nowhere else.
func (p *Publisher) Merge(
	commit func(spans uint64), groups []aggregate.Group, width uint64, now time.Time,
) error {
	switch {
	case p.shared.isStopped():
		return ErrStopping
	case p.shared.unwanted.Load():
		return ErrNotWanted
	}
	cycle := p.guard.Enter()
	if cycle == nil {
		return ErrStopping
	}
	defer p.guard.Exit()
	merging := cycle.LockGroups()
	defer merging.End()
	if err := merging.Reserve(groups, width, now); err != nil {
		return err
	}
	if !p.join(cycle) {
		return ErrTooManyOrigins
	}
	books, spans, ignored := &p.shared.books, uint64(0), uint64(0)
	counted := groups[:0]
	for _, g := range groups {
		if p.finder.normalize(&g.Key) {
			books.normalised.Add(1)
		}
		if p.shared.config.Ignore.Key(&g.Key) {
			ignored += g.Spans
			continue
		}
		spans += g.Spans
		counted = append(counted, g)
	}
	commit(spans)
	entry := books.begin(spans+ignored, DropBug)
	entry.ignored = ignored
	defer entry.end()
	for i := range counted {
		g := &counted[i]
		lost := merging.Add(p.finder.originID, g)
		entry.published += g.Spans
		for f := range span.WholeKey + 1 {
			if lost.Has(span.Label(f)) {
				books.collapsed[f].Add(g.Spans)
			}
		}
	}
	return nil
}
