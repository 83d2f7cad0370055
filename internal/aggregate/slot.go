package aggregate

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Slot is one snapshot on its way through a ring: a few integers and no
// pointer, so the garbage collector has nothing to scan in the rings however
// large they are, and no write barrier runs when one is published.
//
// Four fit a cache line, and each line must come over from the publisher's processor
// to the drainer's. So what only few snapshots need is not in every slot, but in a note:
// a slot of its own before the snapshot's, in the same run.
type Slot struct {
	Value uint64 // nanoseconds, or what a note says
	Key   KeyID
	Facts Facts
}

// Facts is what a slot says besides key and duration. From the lowest bit: the
// snapshot's flags, the low bit of its cycle's number (two are open at most), its
// bucket in the cycle's window, and what is unusual.
type Facts uint32

const (
	factsFlags  = Facts(span.KnownFlags)
	cycleShift  = 2
	bucketShift = 3
	bucketMask  = 3

	factLate     Facts = 1 << (iota + 5) // its end was raised into the oldest bucket
	factEarly                            // its end was lowered into the bucket of now
	factWeighted                         // its weight is not 1, and in a note before it
	noteWeight                           // the value is a weight, as the bits of a float64
	noteEnd                              // the value is when the next snapshot ended; one in many has it, see ages

	// unusual is what the hot path leaves to others.
	unusual = factLate | factEarly | factWeighted | noteWeight | noteEnd
)

// cycle is 0 or 1.
func (f Facts) cycle() uint { return uint(f>>cycleShift) & 1 }

// bucket is its place in the cycle's window.
func (f Facts) bucket() int { return int(f>>bucketShift) & bucketMask }

// Snapshot is what slots are made of.
type Snapshot struct {
	Key      KeyID
	Duration uint64
	End      int64
	Weight   float64
	Flags    span.Flags
}

// MostSlots is how many slots a snapshot can take, but for one in a batch that also
// says when it ended.
const MostSlots = 2

// Append adds the slots of a snapshot of the window's cycle.
func (w *Window) Append(to []Slot, s *Snapshot) []Slot {
	facts := w.Facts(s.End, s.Flags)
	if s.Weight != 1 {
		facts |= factWeighted
		to = append(to, Slot{Value: math.Float64bits(s.Weight), Facts: w.own | noteWeight})
	}
	return append(to, Slot{Value: s.Duration, Key: s.Key, Facts: facts})
}

// AppendEnd adds a note of when the next snapshot ended.
func (w *Window) AppendEnd(to []Slot, end int64) []Slot {
	return append(to, Slot{Value: uint64(end), Facts: w.own | noteEnd})
}
