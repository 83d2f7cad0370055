package aggregate

import (
	"math"
	"math/bits"

	"github.com/spanstatsd/spanstatsd/internal/registry"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Slot is one snapshot on its way through a ring: one integer and no pointer, so the
// garbage collector has nothing to scan in the rings however large they are, and no
// write barrier runs when one is published.
//
// Eight fit a cache line, and each line must come over from the publisher's processor
// to the drainer's: that, and not the work, is most of what a slot costs, so it is as
// small as it can be. From the lowest bit it says the duration in nanoseconds, or what
// a note says; the key; and the facts.
//
// What only few snapshots need is not in every slot but in notes: slots of their own
// before the snapshot's, in the same run. One note carries the upper half of what does
// not fit in 32 bits.
type Slot uint64

const (
	valueBits  = 32
	keyBits    = 24
	keyShift   = valueBits
	factsShift = keyShift + keyBits
)

// Facts is what a slot says besides key and duration. From the lowest bit: the
// snapshot's flags, the low bit of its cycle's number (two are open at most), its
// bucket in the cycle's window, and its kind.
type Facts uint8

const (
	factsFlags  = Facts(span.KnownFlags)
	cycleShift  = flagBits
	bucketShift = cycleShift + 1
	bucketMask  = 3
	kindShift   = bucketShift + 2

	// The kinds. All but the one that is 0 is left to others by the hot path.
	late    Facts = 1 << kindShift // its end was raised into the oldest bucket
	early   Facts = 2 << kindShift // its end was lowered into the bucket of now
	isNote  Facts = 3 << kindShift
	unusual       = late | early | isNote
)

// What a note is about stands where a snapshot has its key.
const (
	noteUpper  registry.KeyID = iota // the upper half of the next slot's value
	noteWeight                       // the next snapshot's weight, see rotated
	noteEnd                          // when the next snapshot ended; one in many has it, see ages
)

// SlotOf is a snapshot's slot. Its flags are among the facts.
func SlotOf(facts Facts, key registry.KeyID, value uint32) Slot {
	return Slot(facts)<<factsShift | Slot(key)<<keyShift | Slot(value)
}

func (s Slot) facts() Facts        { return Facts(s >> factsShift) }
func (s Slot) key() registry.KeyID { return registry.KeyID(s>>keyShift) & (1<<keyBits - 1) }
func (s Slot) value() uint32       { return uint32(s) }

// cycle is 0 or 1.
func (f Facts) cycle() uint { return uint(f>>cycleShift) & 1 }

// bucket is its place in the cycle's window.
func (f Facts) bucket() int { return int(f>>bucketShift) & bucketMask }

// kind is what is unusual, or 0.
func (f Facts) kind() Facts { return f & unusual }

// Snapshot is what slots are made of.
type Snapshot struct {
	Key      registry.KeyID
	Duration uint64
	End      int64
	Weight   float64
	Flags    span.Flags
}

const (
	// MostSlots is how many slots a snapshot can take: its own and its weight's, each
	// with an upper half. One with a weight that is a whole number takes two.
	MostSlots = 4
	// EndSlots is how many more it can take where it also says when it ended.
	EndSlots = 2
)

// Append adds the slots of a snapshot of the window's cycle.
func (w *Window) Append(to []Slot, s *Snapshot) []Slot {
	if s.Weight != 1 {
		to = w.note(to, noteWeight, rotated(math.Float64bits(s.Weight)))
	}
	to = w.upper(to, s.Duration)
	return append(to, w.Slot(s.Key, uint32(s.Duration), s.End, s.Flags))
}

// AppendEnd adds a note of when the next snapshot ended.
func (w *Window) AppendEnd(to []Slot, end int64) []Slot { return w.note(to, noteEnd, uint64(end)) }

func (w *Window) note(to []Slot, about registry.KeyID, value uint64) []Slot {
	return append(w.upper(to, value), SlotOf(w.own|isNote, about, uint32(value)))
}

// upper adds a note of the upper half of the next slot's value, where it has one.
func (w *Window) upper(to []Slot, value uint64) []Slot {
	if upper := uint32(value >> valueBits); upper != 0 {
		return append(to, SlotOf(w.own|isNote, noteUpper, upper))
	}
	return to
}

// rotated is the bits of a weight with its halves the other way round, and theirs the
// weight's: the lower half is 0 where the weight is a whole number.
func rotated(weight uint64) uint64 { return bits.RotateLeft64(weight, valueBits) }
