package registry

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// exhausted is which budgets an origin has used up in this interval: of a text, that it
// has as many values as it may have; of a list, that it has as many tag keys; and
// span.WholeKey, that there is no row for one more key.
//
// The Registry's lock guards its writing; Lookup reads without. Bits are only ever set.
// A bit is set after the last admitted value is findable, so a reader that sees the bit
// and then doesn't find the value knows that it was not admitted and won't be.
type exhausted struct {
	bits     atomic.Uint32 // a Collapsed
	overflow Admission     // with span.WholeKey: what keys without a row get
}

func (e *exhausted) load() Collapsed { return Collapsed(e.bits.Load()) }

func (e *exhausted) set(l span.Label) { e.bits.Or(uint32(setOf(l))) }
