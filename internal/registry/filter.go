package registry

// filter remembers the hashes of values and keys that were used and got no slot. It has a Bloom filter for the
// values used once in this interval, one for those used at least twice, and one for those used at least twice
// in the previous interval. Its memory is fixed: after half a million values, the largest Bloom filter
// mistakes one new value in a thousand for one that it has seen.
type filter struct {
	usedOnce, recurred, recurredBefore bloom
}

const (
	leastFilterBytes = 64 << 10
	mostFilterBytes  = 2 << 20
)

// filterBytes returns the size of the Bloom filter for values used once, given the memory for labels.
// It is the largest power of two that is at most a quarter of that memory, within fixed limits.
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

// recordUses records one use of each of several values, given their hashes. It returns true if this is the first
// use of at least one of them in this interval.
func (f *filter) recordUses(hashes []uint64) (hasFirstUse bool) {
	for _, hash := range hashes {
		if f.usedOnce.has(hash) {
			f.recurred.add(hash)
		} else {
			hasFirstUse = true
		}
	}
	for _, hash := range hashes { // in a second loop, because hashes can contain a value twice
		f.usedOnce.add(hash)
	}
	return hasFirstUse
}

// beginInterval prepares the filter for a new interval. The values that were used at least twice in the
// previous one are kept in recurredBefore.
func (f *filter) beginInterval() {
	f.recurredBefore, f.recurred = f.recurred, f.recurredBefore
	clear(f.usedOnce.words)
	clear(f.recurred.words)
}

// bloom is a Bloom filter that sets four bits per value, all in one word. Its memory is allocated
// with the first value.
type bloom struct {
	words []uint64
	count int // number of words, a power of two
}

// newBloom returns an empty Bloom filter of the given size, a power of two.
func newBloom(bytes int) bloom { return bloom{count: bytes / 8} }

// at returns the word of a value, and its bits in the word.
func (b *bloom) at(hash uint64) (word int, bits uint64) {
	hash *= hashMultiplier
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
