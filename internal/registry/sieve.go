package registry

import "sync/atomic"

// sieve says of a hash that it is not among those that were noted, or that it may be: it
// is wrong of one in a hundred that are not. What is not admitted in a flood is known by
// one word of a few KiB, and by a branch that goes the same way nearly each time; how far
// a search goes, no processor guesses.
//
// One at a time notes, anybody may ask. A hash is noted before what it stands for can be
// found, and a sieve that has grown is shown whole.
type sieve struct{ words atomic.Pointer[[]uint64] }

// sievePlaces is how many places a word of the sieve is for.
const sievePlaces = 8

// newSieve is one for so many places, a power of two.
func newSieve(places int) []uint64 { return make([]uint64, places/sievePlaces) }

func (s *sieve) init() { s.show(newSieve(leastPlaces)) }

func (s *sieve) show(words []uint64) { s.words.Store(&words) }

// view is the sieve as it is now: it has all that was noted before.
func (s *sieve) view() []uint64 { return *s.words.Load() }

// places is how many it is for.
func (s *sieve) places() int { return len(s.view()) * sievePlaces }

// spare is what it takes, used or not.
func (s *sieve) spare() int { return 8 * len(s.view()) }

func (s *sieve) reset() { clear(s.view()) }

// passes says whether a hash may be among those that were noted.
func passes(words []uint64, hash uint64) bool {
	bits := sieveBits(hash)
	return atomic.LoadUint64(&words[uint32(hash)&uint32(len(words)-1)])&bits == bits
}

func sieveBits(hash uint64) uint64 { return 1<<(hash>>58) | 1<<(hash>>52&63) | 1<<(hash>>46&63) }

func note(words []uint64, hash uint64) {
	word := &words[uint32(hash)&uint32(len(words)-1)]
	atomic.StoreUint64(word, *word|sieveBits(hash))
}
