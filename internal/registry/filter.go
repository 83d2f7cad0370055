package registry

// filter remembers values that came and got no row: those that came once in this interval,
// those that came at least twice, and those that came at least twice in the previous one. It
// holds no value but is a Bloom filter each, so it takes a fixed memory: after half a million
// values the largest takes one new value in a thousand for one that came before.
type filter struct {
	once, twice, before bloom
}

const (
	leastFilterBytes = 64 << 10
	mostFilterBytes  = 2 << 20
)

// filterBytes is the size of the part for values that came once: a power of two that follows
// the memory for labels. The other two have half of it each.
func filterBytes(labelBytes int) int {
	bytes := leastFilterBytes
	for bytes < mostFilterBytes && 2*bytes <= labelBytes/4 {
		bytes *= 2
	}
	return bytes
}

func newFilter(bytes int) *filter {
	return &filter{newBloom(bytes), newBloom(bytes / 2), newBloom(bytes / 2)}
}

// add adds the values of one key, which came together, and reports whether all of them came
// before in this interval.
func (f *filter) add(identities []uint64) (recur bool) {
	recur = true
	for _, identity := range identities {
		if f.once.has(identity) {
			f.twice.add(identity)
		} else {
			recur = false
		}
	}
	for _, identity := range identities {
		f.once.add(identity)
	}
	return recur
}

// next begins the next interval.
func (f *filter) next() {
	f.before, f.twice = f.twice, f.before
	clear(f.once.words)
	clear(f.twice.words)
}

// bloom is a Bloom filter whose four bits per value are in one word. Its memory is allocated
// with the first value.
type bloom struct {
	words []uint64
	count int // of words, a power of two
}

func newBloom(bytes int) bloom { return bloom{count: bytes / 8} }

func (b *bloom) at(hash uint64) (word int, bits uint64) {
	hash *= spread
	bits = 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63) | 1<<(hash&63)
	return int(hash>>32) & (b.count - 1), bits
}

func (b *bloom) add(hash uint64) {
	if b.words == nil {
		b.words = make([]uint64, b.count)
	}
	word, bits := b.at(hash)
	b.words[word] |= bits
}

func (b *bloom) has(hash uint64) bool {
	if b.words == nil {
		return false
	}
	word, bits := b.at(hash)
	return b.words[word]&bits == bits
}
