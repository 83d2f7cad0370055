package registry

import "sync/atomic"

// marks is a set of dense numbers. Room for a number is made under its owner's lock, before
// anybody is told the number; any goroutine may then mark it, or ask. A mark stays.
type marks struct{ chunks publishedList[*markChunk] }

// markChunk does not move, so that no mark is lost while the list grows.
type markChunk [64]atomic.Uint64

const chunkMarks = 64 * 64

func (m *marks) grow(number uint32) {
	for int(number) >= chunkMarks*len(m.chunks.items) {
		m.chunks.append(new(markChunk))
	}
}

// word is where the mark of a number is.
func (m *marks) word(number uint32) *atomic.Uint64 {
	return &(*m.chunks.at(number / chunkMarks))[number/64%64]
}

func (m *marks) has(number uint32) bool { return m.word(number).Load()&(1<<(number%64)) != 0 }

func (m *marks) mark(number uint32) {
	if !m.has(number) {
		m.word(number).Or(1 << (number % 64))
	}
}
