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
	never                   // of a gate alone: nothing passes
)

// sights is a Bloom filter of what came in one interval and got no place. There are two
// generations, that of the current interval and the last one's. It takes no lock and no
// memory a value: half a million values fill a fifth of the bits of the largest, and then
// it takes one new value in a thousand for one that came before. Such a value gets one of
// the places that no value which repeated needs, and no more.
//
// Adding is one atomic operation on one word, which has all four bits of a value. Whoever
// asks while another adds may be too early by that one.
type sights struct {
	words atomic.Pointer[[]atomic.Uint64] // nil until the first value
	count int                             // of words, a power of two
}

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

func (s *sights) add(hash uint64) {
	words := s.words.Load()
	if words == nil {
		made := make([]atomic.Uint64, s.count)
		s.words.CompareAndSwap(nil, &made)
		words = s.words.Load()
	}
	word, bits := place(*words, hash)
	if word.Load()&bits != bits {
		word.Or(bits)
	}
}

func (s *sights) has(hash uint64) bool {
	words := s.words.Load()
	if words == nil {
		return false
	}
	word, bits := place(*words, hash)
	return word.Load()&bits == bits
}

// clear empties the filter, also while somebody asks. It costs nothing where nothing was
// added.
func (s *sights) clear() {
	if words := s.words.Load(); words != nil {
		for i := range *words {
			if word := &(*words)[i]; word.Load() != 0 {
				word.Store(0)
			}
		}
	}
}

// place is the word of a value and its bits there.
func place(words []atomic.Uint64, hash uint64) (word *atomic.Uint64, bits uint64) {
	hash *= spread
	bits = 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63) | 1<<(hash&63)
	return &words[hash>>32&uint64(len(words)-1)], bits
}
