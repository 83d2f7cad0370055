package admit

import (
	"math"
	"math/bits"

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
