package registry

// bloomFilter says whether a hash was probably added, in one of two intervals. It takes no
// memory a hash: half a million fill a fifth of an interval's bits in the largest filter, and
// then it takes one new hash in a thousand for one that was added. The Registry's lock guards
// it.
type bloomFilter struct {
	words []wordPair // none until the first hash
	count int        // of pairs, a power of two
}

// wordPair has a word of each generation. All four bits of a hash are in one word.
type wordPair [2]uint64

// generation is one of two intervals that take turns.
type generation uint8

func (g generation) other() generation { return 1 - g }

const (
	leastFilterBytes = 64 << 10
	mostFilterBytes  = 2 << 20
)

// filterBytes is the size of a generation: a power of two that follows the memory for labels.
func filterBytes(labelBytes int) int {
	bytes := leastFilterBytes
	for bytes < mostFilterBytes && 2*bytes <= labelBytes/4 {
		bytes *= 2
	}
	return bytes
}

func newBloomFilter(bytes int) *bloomFilter { return &bloomFilter{count: bytes / 8} }

// place is where the bits of a hash are.
func (f *bloomFilter) place(hash uint64) (at int, bits uint64) {
	hash *= spread
	bits = 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63) | 1<<(hash&63)
	return int(hash>>32) & (f.count - 1), bits
}

func (f *bloomFilter) add(to generation, hash uint64) {
	if f.words == nil {
		f.words = make([]wordPair, f.count)
	}
	at, bits := f.place(hash)
	f.words[at][to] |= bits
}

// has says in which generations a hash was probably added.
func (f *bloomFilter) has(hash uint64) (in [2]bool) {
	if f.words == nil {
		return in
	}
	at, bits := f.place(hash)
	pair := &f.words[at]
	return [2]bool{pair[0]&bits == bits, pair[1]&bits == bits}
}

// clear empties a generation. It costs nothing where nothing was added.
func (f *bloomFilter) clear(of generation) {
	for i := range f.words {
		f.words[i][of] = 0
	}
}
