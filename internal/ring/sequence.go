package ring

import (
	"sync/atomic"
	"unsafe"
)

// claimAttempts bounds how often a claim goes back after losing a race. Each
// loss means that another producer has won, so only many producers at once can exhaust it.
const claimAttempts = 128

// sequence is the protocol without the slots: who may write which positions,
// and who may read them. It is not generic, so one copy of it serves every ring.
//
// Positions count slots from the ring's first lap on and never go back. Each
// group below is written by other threads than its neighbours, or by none.
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

// fixed is written once, before anybody shares the ring.
type fixed struct {
	words []atomic.Uint64
	size  uint64
	mask  uint64
	shift uint
}

// producers is what the producers write: the end of what is claimed, and their
// copy of the consumer's cursor. A claim needs both, so they share a line.
type producers struct {
	tail  atomic.Uint64
	freed atomic.Uint64
}

// consumer is the start of what is not freed yet.
type consumer struct {
	head      atomic.Uint64
	consuming atomic.Bool // whether somebody runs Consume
}

// counters are written by the consumer, but for abandoned, and are read by
// anybody. They stand apart from the cursors, so that reading them costs
// neither side a line that it needs.
type counters struct {
	published atomic.Uint64
	skipped   atomic.Uint64
	abandoned atomic.Uint64
	highWater atomic.Uint64
	parks     atomic.Uint64
	wakes     atomic.Uint64
}

// init makes an empty sequence of 1<<shift positions.
func (s *sequence) init(shift uint) {
	s.shift = shift
	s.size = 1 << shift
	s.mask = s.size - 1
	s.words = aligned[atomic.Uint64](int(s.size))
	s.tail.Store(s.size)
	s.freed.Store(s.size)
	s.head.Store(s.size)
	s.parking.init()
	s.mailbox.init()
}

// Result is what became of a claim.
type Result uint8

const (
	// Claimed: the run belongs to the caller, who owes its Publish or Skip.
	Claimed Result = iota
	// Full: the ring has no room for the whole run. Nothing was taken.
	Full
	// Contended: other producers won every race for the tail, though there may
	// be room. Nothing was taken, and asking again is reasonable.
	Contended
)

// claim takes n positions for the caller alone, or none.
func (s *sequence) claim(n uint64) (uint64, Result) {
	if n > s.size {
		return 0, Full
	}
	for range claimAttempts {
		tail := s.tail.Load()
		if !s.fits(tail + n) {
			return 0, Full
		}
		if s.tail.CompareAndSwap(tail, tail+n) {
			return tail, Claimed
		}
	}
	return 0, Contended
}

// fits tells whether a run may end at a position. The producers' copy of the
// consumer's cursor is never ahead of it, so what the copy allows is allowed;
// only what it refuses is asked of the consumer's own line.
//
// The differences are signed: the caller's view of the tail may be so old that
// the consumer has passed it, and then its compare-and-swap fails anyway.
func (s *sequence) fits(end uint64) bool {
	freed := s.freed.Load()
	if int64(end-freed) <= int64(s.size) {
		return true
	}
	head := s.head.Load()
	if head != freed {
		s.freed.Store(head)
	}
	return int64(end-head) <= int64(s.size)
}

// read returns the word of the run at a position, if it is published.
func (s *sequence) read(at uint64) (word, bool) {
	w := word(s.words[at&s.mask].Load())
	return w, w.publishes(at, s.shift)
}

// A word stands at the first slot of a run and says, in one atomic value, that
// the run is published. From the top: the lap (how often the cursors had gone
// round when the run was claimed), the run's length less one, and whether it is
// skipped. With 2^s slots the length takes s bits, the skip one, and the lap
// the 63-s that remain.
//
// The slot's own index gives the low s bits of the position, so a word names
// its position modulo 2^63: at a hundred million slots a second a stale word
// could be taken for a new one after some 2900 years. Words are never cleared.
// The cursors start in lap 1, so the zero that fresh memory holds is a word of
// no run.
type word uint64

// wordOf describes the run of n slots at a position of a ring with 1<<shift slots.
func wordOf(at, n uint64, skip bool, shift uint) word {
	w := word(at>>shift<<shift | (n - 1))
	w <<= 1
	if skip {
		w |= 1
	}
	return w
}

// publishes tells whether the word, found where a run at that position would
// have it, is of that run and not of an earlier lap.
func (w word) publishes(at uint64, shift uint) bool {
	return uint64(w)>>(shift+1) == at<<1>>1>>shift
}

func (w word) length(mask uint64) uint64 { return uint64(w)>>1&mask + 1 }

func (w word) skipped() bool { return w&1 != 0 }
