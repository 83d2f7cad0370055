package aggregate

import (
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Slot is one snapshot on its way through a ring: all that a drainer needs of it, in
// numbers. It holds no pointer, so the garbage collector has nothing to scan in
// the rings however large they are, and no write barrier runs when one is published.
type Slot struct {
	Duration uint64  // nanoseconds
	End      int64   // nanoseconds since the Unix epoch
	Weight   float64 // how many spans it stands for
	Key      registry.KeyID
	Flags    span.Flags
	Place
}

// Place is where a snapshot is counted. A Window makes it.
type Place struct {
	cycle  uint8 // low bit of the cycle's number: two are in use at most
	bucket uint8 // in the cycle's window
	clamp  clamp
}

// clamp says whether a snapshot is counted in another bucket than the one it ended in.
type clamp uint8

const (
	unclamped clamp = iota
	late            // it ended before the window, and is counted in the oldest bucket
	early           // it ends after now, and is counted in the bucket of now
)
