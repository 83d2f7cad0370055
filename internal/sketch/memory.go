package sketch

import (
	"sync"
	"sync/atomic"
)

// A page counts the spans of 64 neighbouring bins, and a chunk is what an arena takes
// from the memory at a time.
const (
	pageBins   = 64
	chunkPages = 256
	ChunkBytes = chunkPages * pageBins * 4 // 64 KiB
)

type (
	page  [pageBins]uint32
	chunk *[chunkPages]page
)

// Memory is what all stores together take for their pages, in chunks, up to one limit.
// It is safe for concurrent use. An arena takes a chunk for 256 pages and gives all of
// them back at once, so the lock is rarely contended, and what one cycle or drainer does
// not need the others have.
type Memory struct {
	limit     int           // chunks
	coarsened atomic.Uint64 // see Coarsened

	mu       sync.Mutex
	free     []chunk
	made     int // chunks, the free ones among them
	reserved int // chunks that others hold in a form of their own
}

// NewMemory returns memory for that many bytes. None is allocated yet.
func NewMemory(bytes int) *Memory { return &Memory{limit: bytes / ChunkBytes} }

// Taken is the bytes that are in use at present.
func (m *Memory) Taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken() * ChunkBytes
}

func (m *Memory) taken() int { return m.made - len(m.free) + m.reserved }

// Coarsened is how often a span was counted in a higher bin than its own because there
// was no memory for that bin.
func (m *Memory) Coarsened() uint64 { return m.coarsened.Load() }

// take returns a chunk, or nil at the limit. The chunk is not cleared.
func (m *Memory) take() chunk {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.free); n > 0 {
		c := m.free[n-1]
		m.free = m.free[:n-1]
		return c
	}
	if m.made+m.reserved >= m.limit {
		return nil
	}
	m.made++
	return new([chunkPages]page)
}

func (m *Memory) putBack(chunks []chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, chunks...)
}

// Reserve sets as much as some chunks aside for a caller that keeps bins in a form of
// its own. It reports false, and reserves nothing, where there is no room for them.
func (m *Memory) Reserve(chunks int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken()+chunks > m.limit {
		return false
	}
	m.reserved += chunks
	if excess := m.made + m.reserved - m.limit; excess > 0 { // that many are free
		kept := len(m.free) - excess
		clear(m.free[kept:])
		m.free, m.made = m.free[:kept], m.made-excess
	}
	return true
}

// Release gives back what was reserved.
func (m *Memory) Release(chunks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved -= chunks
}

// Arena is the pages of the stores of one table, which refer to them by number. It has
// one writer, the table's.
//
// A counter of a page has 32 bits, and does not overflow: a table lives for one cycle of
// some ten seconds, and for 2^32 spans in one its one writer would have to count hundreds
// of millions a second.
type Arena struct {
	memory *Memory
	chunks []chunk
	next   uint32 // number of the next page; 0 means none, so the first page stays unused
}

// NewArena returns an arena without pages.
func NewArena(memory *Memory) Arena { return Arena{memory: memory} }

func (a *Arena) page(number uint32) *page { return &a.chunks[number/chunkPages][number%chunkPages] }

// newPage returns the number of an empty page, or 0 where there is no memory.
func (a *Arena) newPage() uint32 {
	if int(a.next/chunkPages) == len(a.chunks) {
		c := a.memory.take()
		if c == nil {
			return 0
		}
		a.chunks = append(a.chunks, c)
	}
	number := max(a.next, 1)
	a.next = number + 1
	*a.page(number) = page{}
	return number
}

// Reset gives every page back. The stores that refer to them must not be used again.
func (a *Arena) Reset() {
	a.memory.putBack(a.chunks)
	clear(a.chunks)
	a.chunks, a.next = a.chunks[:0], 0
}
