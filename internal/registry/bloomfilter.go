package registry

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
)

// bloomFilter tells most texts that were not added from those that were, by how they end,
// before they are hashed: those of a flood mostly differ there. A text has two bits of one
// word. Adding is the Registry's, under its lock; any goroutine may ask without.
type bloomFilter struct {
	words [1 << filterBits]atomic.Uint64
}

const (
	filterBits = 10 // of the number of a word
	filterEnd  = 8  // bytes of a text
)

// filterSecrets are of one process, so that nobody outside can choose texts that fill few
// words.
var filterSecrets = [2]uint64{rand.Uint64(), rand.Uint64()}

func (f *bloomFilter) add(s scope, text string) {
	if word, mask, ok := f.place(s, text); ok {
		word.Store(word.Load() | mask)
	}
}

// mayHave reports whether a text may have been added. It was not, if the answer is no.
func (f *bloomFilter) mayHave(s scope, text string) bool {
	word, mask, ok := f.place(s, text)
	return !ok || word.Load()&mask == mask
}

// place is the word of a text and its bits there. Texts that are too short have none.
func (f *bloomFilter) place(s scope, text string) (word *atomic.Uint64, mask uint64, ok bool) {
	if len(text) < filterEnd {
		return nil, 0, false
	}
	hash := endHash(uint64(s)<<32, text)
	return &f.words[hash%(1<<filterBits)], 1<<(hash>>filterBits%64) | 1<<(hash>>(filterBits+6)%64), true
}

// endHash is a hash of how a text ends that is not too short, and of where it stands.
func endHash(in uint64, text string) uint64 {
	end := binary.LittleEndian.Uint64([]byte(text[len(text)-filterEnd:]))
	upper, lower := bits.Mul64(end^filterSecrets[0], in^uint64(len(text))^filterSecrets[1])
	return upper ^ lower
}
