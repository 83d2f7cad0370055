package ring

import (
	"sync/atomic"
	"unsafe"
)

// claimAttempts limits how often a claim retries after another producer was faster. Only many
// concurrent producers can exhaust it.
const claimAttempts = 128

// sequence implements the protocol without the slots: which positions a producer may write, and
// which the consumer may read. It is not generic, so one copy of the code serves every ring.
//
// Positions count slots from the first lap of the ring and never decrease. The fields are in groups:
// each group is written by other threads than its neighbors, or never. Padding between the groups
// keeps them on separate cache lines.
type sequence struct {
	_ [apart]byte
	fixed
	_ [apart - unsafe.Sizeof(fixed{})]byte
	producers
	_ [apart - unsafe.Sizeof(producers{})]byte
	consumer
	_ [apart - unsafe.Sizeof(consumer{})]byte
	parking
	_ [apart - unsafe.Sizeof(parking{})]byte
	counters
	_ [apart - unsafe.Sizeof(counters{})]byte
	mailbox
	_ [apart]byte
}

// fixed is written only before the ring is shared.
type fixed struct {
	words []atomic.Uint64 // by index of the slot, see word
	size  uint64          // number of slots
	mask  uint64          // position & mask is the index of the slot
	shift uint            // position >> shift is the lap
}

// producers is written by producers. A claim needs both fields, so they share a cache line.
type producers struct {
	tail     atomic.Uint64 // end of the claimed positions
	headCopy atomic.Uint64 // copy of consumer.head, possibly outdated
}

// consumer is written by the consumer.
type consumer struct {
	head      atomic.Uint64 // start of the positions that are not freed
	consuming atomic.Bool   // Consume is running
}

// counters are written by the consumer, except for abandoned, and can be read by any goroutine.
// They are separate from the positions, so that reading them does not slow down either side.
type counters struct {
	published atomic.Uint64
	skipped   atomic.Uint64
	abandoned atomic.Uint64
	highWater atomic.Uint64
	sleeps    atomic.Uint64
	wakes     atomic.Uint64
}

// init prepares an empty ring of 1<<shift slots. Positions begin at s.size, the start of lap 1, because the zeroed words
// of a new ring look like published slots of lap 0.
func (s *sequence) init(shift uint) {
	s.shift = shift
	s.size = 1 << shift
	s.mask = s.size - 1
	s.words = aligned[atomic.Uint64](int(s.size))
	firstPosition := s.size
	s.tail.Store(firstPosition)
	s.headCopy.Store(firstPosition)
	s.head.Store(firstPosition)
	s.parking.init()
	s.mailbox.init()
}

// Result is the result of a claim.
type Result uint8

const (
	// Claimed means that the caller owns the run and must call Publish or Skip.
	Claimed Result = iota
	// Full means that the ring has no room for the whole run.
	Full
	// Contended means that other producers were faster in every attempt, although there may be room.
	// The caller can try again.
	Contended
)

// claim reserves n adjacent positions for the caller, and returns the first of them. The Result is Full
// if fewer than n are free. It is Contended if other producers were faster in each of claimAttempts
// attempts.
func (s *sequence) claim(n uint64) (start uint64, result Result) {
	if n > s.size {
		return 0, Full
	}
	for range claimAttempts {
		tail := s.tail.Load()
		if !s.hasSpaceUpTo(tail + n) {
			return 0, Full
		}
		if s.tail.CompareAndSwap(tail, tail+n) {
			return tail, Claimed
		}
	}
	return 0, Contended
}

// hasSpaceUpTo reports whether a claim that ends at position end fits in the ring, after the slots that the consumer has
// not freed. s.head is the first of them. It is read only if an older copy says that there is no space, because reading
// it slows down the consumer.
func (s *sequence) hasSpaceUpTo(end uint64) bool {
	oldHead := s.headCopy.Load()
	if s.isWithinSize(oldHead, end) {
		return true
	}
	head := s.head.Load()
	if head != oldHead {
		s.headCopy.Store(head)
	}
	return s.isWithinSize(head, end)
}

// isWithinSize reports whether the slots from position start up to position end fit in the ring. It
// returns true if start is after end: other producers have then claimed the slots up to end, so the
// claim of the caller fails.
func (s *sequence) isWithinSize(start, end uint64) bool {
	length := int64(end - start) // negative if start is after end
	return length <= int64(s.size)
}

// read returns the word that describes the slots published at the given position, and reports whether
// there are any. If several slots were published together, the position must be that of the first.
func (s *sequence) read(position uint64) (word, bool) {
	w := word(s.words[position&s.mask].Load())
	return w, w.publishes(position, s.shift)
}

// word marks a run as published. It is stored atomically for the first slot of the run. From the most
// significant bit, it contains the lap (how often the position has wrapped around), the length of the run
// minus one, and whether the run is skipped. With 2^s slots the length takes s bits, the flag one, and the
// lap the remaining 63-s.
//
// The index of the slot is the low s bits of the position, so a word identifies its position modulo 2^63.
// At a hundred million slots per second, a stale word could be mistaken for a new one after about 2900
// years. Words are never cleared. Positions start in lap 1, so zeroed memory contains no published run.
type word uint64

// wordOf returns the word that marks n slots, the first of which is at the given position, as published. If
// isSkipped is true, the consumer frees the slots without reading them. The ring has 1<<shift slots.
func wordOf(position, n uint64, isSkipped bool, shift uint) word {
	lap := position >> shift
	lengthMinusOne := n - 1 // fits in shift bits
	w := word(lap<<(flagBits+shift) | lengthMinusOne<<flagBits)
	if isSkipped {
		w |= skipFlag
	}
	return w
}

// skipFlag is the bit of a word that is set if the run is skipped.
const skipFlag word = 1

// flagBits is the number of bits for skipFlag, the lowest ones of a word.
const flagBits = 1

// publishes reports whether w was written for slots at the given position, and not at an earlier
// position with the same index. It ignores the highest bit of the position, for which a word has no
// space.
func (w word) publishes(position uint64, shift uint) bool {
	const highestBit = 1 << 63
	lap := uint64(w) >> (flagBits + shift)
	return lap == (position&^highestBit)>>shift
}

func (w word) length(mask uint64) uint64 { return uint64(w)>>flagBits&mask + 1 }

func (w word) skipped() bool { return w&skipFlag != 0 }
