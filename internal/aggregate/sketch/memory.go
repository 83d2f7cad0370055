package sketch

import (
	"sync"
	"sync/atomic"
)

// A chunk is what an arena takes from the memory at a time.
const (
	chunkCounters = 1 << 14
	ChunkBytes    = chunkCounters * 4 // 64 KiB
)

type chunk *[chunkCounters]uint32

// Memory is what all stores together take for their pages, in chunks, up to one limit.
// It is safe for concurrent use. An arena takes a chunk for 256 pages, or 128 of a CommonGrid (64 where
// bounds lie close, see GridWith), and gives all of them back at once, so the lock is rarely contended,
// and what one cycle or drainer does not need the others have.
type Memory struct {
	grid      *Grid         // whose cells all stores count in
	limit     int           // chunks
	coarsened atomic.Uint64 // see Coarsened

	mu       sync.Mutex
	free     []chunk
	made     int // chunks, the free ones among them
	reserved int // chunks that others hold in a form of their own
}

// NewMemory returns memory for that many bytes, of stores that count in that grid's cells.
// None is allocated yet.
func NewMemory(bytes int, grid *Grid) *Memory { return &Memory{grid: grid, limit: bytes / ChunkBytes} }

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
	return new([chunkCounters]uint32)
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

// Arena is the pages of the stores of one table, which refer to them by the place of their
// first counter. It has one writer, the table's.
//
// A counter of a page, or of a store, has 32 bits and does not overflow: a table lives for one cycle of
// some ten seconds, and for 2^32 spans in one its one writer would have to count hundreds
// of millions a second.
type Arena struct {
	grid   *Grid
	memory *Memory
	chunks []chunk
	next   uint32 // place of the next page; 0 means none, so the first page stays unused
}

// NewArena returns an arena without pages.
func NewArena(memory *Memory) Arena { return Arena{grid: memory.grid, memory: memory} }

// counter is that of a cell in the page at a place.
func (a *Arena) counter(place uint32, cell uint) *uint32 {
	return &a.chunks[place/chunkCounters][(uint(place)+cell%pageCells)%chunkCounters]
}

// page is the counters of the page at a place.
func (a *Arena) page(place uint32) []uint32 {
	first := uint(place) % chunkCounters
	return a.chunks[place/chunkCounters][first : first+a.grid.perPage]
}

// newPage returns the place of an empty page, or 0 where there is no memory.
func (a *Arena) newPage() uint32 {
	if int(a.next/chunkCounters) == len(a.chunks) {
		c := a.memory.take()
		if c == nil {
			return 0
		}
		a.chunks = append(a.chunks, c)
	}
	counters := uint32(a.grid.perPage)
	place := max(a.next, counters)
	a.next = place + counters
	clear(a.page(place))
	return place
}

// Reset gives every page back. The stores that refer to them must not be used again.
func (a *Arena) Reset() {
	a.memory.putBack(a.chunks)
	clear(a.chunks)
	a.chunks, a.next = a.chunks[:0], 0
}
