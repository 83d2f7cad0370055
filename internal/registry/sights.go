package registry

import "sync/atomic"

// sight is what is known of a value, or of a whole key, when it comes. A gate asks for one
// of these at the least, see gates.
type sight uint8

const (
	firstSight sight = iota // nothing
	cameAgain               // it came before in this interval
	cameBefore              // it came in the last one
	repeated                // it had a place in the last one, and came twice there
)

// sights is a Bloom filter of what came in two intervals, the current one and the last: what
// waited in them, and what the last one left. Both have their word of a value side by side, so
// that one line of the processor's cache says all that is known of it; of a flood, each value
// brings another. It takes no lock and no memory a value: half a million values fill a fifth
// of an interval's bits in the largest, and then it takes one new value in a thousand for one
// that came before. Such a value gets one of the places that no value which repeated needs,
// and no more.
//
// Adding is one atomic operation on one word, which has all four bits of a value. Whoever
// asks while another adds may be too early by that one.
type sights struct {
	words atomic.Pointer[[]wordPair] // nil until the first value
	count int                        // of pairs, a power of two
}

// generation is one of two intervals that take turns.
type generation uint8

func (g generation) other() generation { return 1 - g }

// wordPair has a word of each generation.
type wordPair [2]atomic.Uint64

const (
	leastSightBytes = 64 << 10
	mostSightBytes  = 2 << 20
)

// sightBytes is the size of a generation: a power of two that follows the memory for labels.
func (c *Config) sightBytes() int {
	bytes := leastSightBytes
	for bytes < mostSightBytes && 2*bytes <= c.LabelBytes/4 {
		bytes *= 2
	}
	return bytes
}

func newSights(config *Config) *sights { return &sights{count: config.sightBytes() / 8} }

// spot is where the sights have a value: the number of its pair, and its bits in each word.
type spot struct {
	bits uint64
	pair uint32
}

// spotOf is that of a value, by its hash.
func (s *sights) spotOf(hash uint64) spot {
	hash *= spread
	bits := uint64(1)<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63) | 1<<(hash&63)
	return spot{bits, uint32(hash>>32) & uint32(s.count-1)}
}

func (s *sights) add(to generation, at spot) {
	words := s.words.Load()
	if words == nil {
		made := make([]wordPair, s.count)
		s.words.CompareAndSwap(nil, &made)
		words = s.words.Load()
	}
	if word := &(*words)[at.pair][to]; word.Load()&at.bits != at.bits {
		word.Or(at.bits)
	}
}

// isEmpty says whether nothing was ever added.
func (s *sights) isEmpty() bool { return s.words.Load() == nil }

// came says in which interval a value came.
type came struct{ inThis, inOther bool }

// has says whether a value came in an interval, and whether it came in the other.
func (s *sights) has(in generation, at spot) came {
	pairs := s.pairs()
	if pairs == nil {
		return came{}
	}
	return at.cameIn(&pairs[at.pair], in)
}

// pairs are all pairs, or nil before the first value.
func (s *sights) pairs() []wordPair {
	if words := s.words.Load(); words != nil {
		return *words
	}
	return nil
}

// cameIn is has by the value's pair.
func (at spot) cameIn(pair *wordPair, in generation) came {
	return came{pair[in].Load()&at.bits == at.bits, pair[in.other()].Load()&at.bits == at.bits}
}

// clear empties a generation, also while somebody asks. It costs nothing where nothing was
// added.
func (s *sights) clear(of generation) {
	if words := s.words.Load(); words != nil {
		for i := range *words {
			if word := &(*words)[i][of]; word.Load() != 0 {
				word.Store(0)
			}
		}
	}
}
