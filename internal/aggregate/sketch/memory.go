package sketch

import (
	"sync"
	"sync/atomic"
)

// Arenas allocate memory in chunks.
const (
	chunkCounters = 1 << 14
	ChunkBytes    = chunkCounters * 4 // 64 KiB
)

type chunk *[chunkCounters]uint32

// Memory limits the memory for the pages of all stores, and hands it out in chunks. It is safe for
// concurrent use. A chunk has 256 pages, or 128 of a CommonGrid (64 if bounds are close together,
// see GridWith), and an arena returns all its chunks together, so the lock is rarely contended.
// Chunks that one cycle or drainer does not need are available to the others.
type Memory struct {
	grid      *Grid         // cells that all stores count in
	limit     int           // chunks
	coarsened atomic.Uint64 // see Coarsened

	mu        sync.Mutex
	free      []chunk
	allocated int // number of allocated chunks, including free ones
	reserved  int // chunks charged by Reserve
}

// NewMemory returns a Memory that will allocate at most the given number of bytes for counters. Each counter counts
// the durations in one cell of grid, which divides all durations into cells.
func NewMemory(bytes int, grid *Grid) *Memory { return &Memory{grid: grid, limit: bytes / ChunkBytes} }

// Taken returns the number of bytes in use.
func (m *Memory) Taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.taken() * ChunkBytes
}

func (m *Memory) taken() int { return m.allocated - len(m.free) + m.reserved }

// Coarsened returns the number of spans that were counted in a bin for longer durations, because there
// was no memory for the right bin.
func (m *Memory) Coarsened() uint64 { return m.coarsened.Load() }

// take returns a chunk of memory, or nil if the limit is reached. The chunk can contain old counts.
func (m *Memory) take() chunk {
	m.mu.Lock()
	defer m.mu.Unlock()
	last := len(m.free) - 1
	if last >= 0 {
		c := m.free[last]
		m.free = m.free[:last]
		return c
	}
	if m.allocated+m.reserved >= m.limit {
		return nil
	}
	m.allocated++
	return new([chunkCounters]uint32)
}

func (m *Memory) putBack(chunks []chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, chunks...)
}

// Reserve lowers the memory limit by a number of chunks, for memory that the caller allocates itself. If
// fewer chunks are free, it returns false and does nothing. The caller must call Release afterwards.
func (m *Memory) Reserve(chunks int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken()+chunks > m.limit {
		return false
	}
	m.reserved += chunks
	m.discardExcess()
	return true
}

// discardExcess leaves free chunks to the garbage collector if more memory is allocated and reserved than
// the limit permits. The chunks in use and the reserved ones must be within the limit.
func (m *Memory) discardExcess() {
	excess := m.allocated + m.reserved - m.limit
	if excess <= 0 {
		return
	}
	remaining := len(m.free) - excess // not negative, because only free chunks can exceed the limit
	clear(m.free[remaining:])         // removes the references
	m.free = m.free[:remaining]
	m.allocated -= excess
}

// Release returns reserved chunks.
func (m *Memory) Release(chunks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reserved -= chunks
}

// Arena contains the pages of the stores of one table. Stores refer to a page by the index of its
// first counter. An Arena has one writer, the table's.
//
// Counters have 32 bits and cannot overflow: a table lives for one cycle of some ten seconds, so
// 2^32 spans would require hundreds of millions per second from one writer.
type Arena struct {
	grid   *Grid
	memory *Memory
	chunks []chunk
	next   uint32 // index of the next page; 0 if no page is allocated
}

// noPage is the index that a store has for a page without counters.
const noPage = 0

// NewArena returns an arena without pages.
func NewArena(memory *Memory) Arena { return Arena{grid: memory.grid, memory: memory} }

// counter returns the counter of a cell in the page at the given index.
func (a *Arena) counter(index uint32, cell uint) *uint32 {
	return &a.chunks[index/chunkCounters][(uint(index)+cell%pageCells)%chunkCounters]
}

// page returns the counters of the page at the given index.
func (a *Arena) page(index uint32) []uint32 {
	first := uint(index) % chunkCounters
	return a.chunks[index/chunkCounters][first : first+a.grid.cellsPerPage]
}

// newPage allocates a page of counters, all of which are 0, and returns the index of its first counter. It
// returns noPage if the memory limit is reached.
func (a *Arena) newPage() uint32 {
	pageSize := uint32(a.grid.cellsPerPage)
	index := a.next // of the page's first counter, among the counters of all chunks
	if index == 0 {
		index = pageSize // leaves out the first page, because the index 0 means no page
	}
	chunkIndex := int(index / chunkCounters)
	areChunksFull := chunkIndex == len(a.chunks)
	if areChunksFull {
		c := a.memory.take()
		if c == nil {
			return noPage
		}
		a.chunks = append(a.chunks, c)
	}
	a.next = index + pageSize
	clear(a.page(index))
	return index
}

// Reset returns all pages. The stores that refer to them must not be used again.
func (a *Arena) Reset() {
	a.memory.putBack(a.chunks)
	clear(a.chunks)
	a.chunks, a.next = a.chunks[:0], 0
}
