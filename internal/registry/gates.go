package registry

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A budget has a gate before it, which says how well a value must be known to get a place:
//
//	gate        open to                                while what is taken, and what is kept
//	                                                   for values that repeated, is less than
//	firstSight  whatever comes                         half of the budget; and a sixteenth of
//	                                                   it is open so in any case
//	cameAgain   what came before in this interval,     three quarters
//	            or in the last
//	cameBefore  what came in the last                  all
//	repeated    what had a place in the last, and      for ever: its place is kept
//	            came twice there
//
// So one-off values get half of what nobody needs, values that come some times and never
// again a quarter more, and what keeps coming all of it. A gate only rises until the
// interval ends. What does not pass waits under the name of its collapsed key: it looks
// again when it comes the next time, as long as it may still pass.
func gateOf(others, kept, budget int) sight {
	switch taken := others + kept; {
	case taken >= budget:
		return repeated
	case taken < (budget+1)/2, others < (budget+15)/16:
		return firstSight
	case taken < budget-budget/4:
		return cameAgain
	}
	return cameBefore
}

// height is how high a gate is: how well a value must be known to pass, and whether no place
// is kept any more, because all that repeated in the last interval have theirs.
type height uint8

const (
	noneKept height = 1 << 3
	shut            = height(repeated) | noneKept // nothing passes
)

// asks is how well a value must be known to pass.
func (h height) asks() sight { return sight(h &^ noneKept) }

// orHigher is as high as either.
func (h height) orHigher(other height) height {
	return height(max(h.asks(), other.asks())) | (h|other)&noneKept
}

// gates are all gates of an origin: a text's, that of the tag keys of a list, and
// span.WholeKey's, which is that of rows.
type gates uint64

const gateBits = 4

func (g gates) of(l span.Label) height { return height(g >> (gateBits * l) & (1<<gateBits - 1)) }

// publishedGates are an origin's gates as lookups see them. The Registry's lock guards
// their writing, and lookups read without. A gate rises after the last value that has
// passed is findable, so a reader that sees the gate and then doesn't find the value knows
// that it has not passed. So it is with the last value that a place was kept for.
type publishedGates struct {
	gates    atomic.Uint64
	overflow Admission // complete before the gate of rows rises: what keys without a row get
}

func (p *publishedGates) load() gates { return gates(p.gates.Load()) }

// raise makes it known that a gate is this high, if it was lower.
func (p *publishedGates) raise(l span.Label, to height) {
	now := p.load()
	if high := now.of(l).orHigher(to); high != now.of(l) {
		p.gates.Store(uint64(now&^(gates(1<<gateBits-1)<<(gateBits*l)) | gates(high)<<(gateBits*l)))
	}
}
