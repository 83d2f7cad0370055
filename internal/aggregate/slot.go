package aggregate

import "github.com/spanstatsd/spanstatsd/internal/span"

// Slot is one snapshot on its way through a ring: a few integers and no
// pointer, so the garbage collector has nothing to scan in the rings however
// large they are, and no write barrier runs when one is published. Two fit a
// cache line.
type Slot struct {
	Duration uint64
	End      int64
	Weight   float64
	Key      KeyID
	Cycle    uint16 // the low bits of the cycle's number; two cycles at most are open at once
	Flags    span.Flags
	_        byte
}
