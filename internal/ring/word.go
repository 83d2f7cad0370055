package ring

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

// length is how many slots the run has.
func (w word) length(mask uint64) uint64 { return uint64(w)>>1&mask + 1 }

// skipped tells whether the consumer passes over the run.
func (w word) skipped() bool { return w&1 != 0 }
