package sketch

import (
	"sync"
	"sync/atomic"
)

// A page counts the spans of 64 neighbouring bins, in two cache lines. Counters
// of 16 bits are a quarter of the library's; what wraps around is carried (see
// Arena.carry), so nothing is lost.
const (
	pageBins = 64
	allPages = (allBins + pageBins - 1) / pageBins // that one sketch can have: 35

	chunkPages = 512
	ChunkBytes = chunkPages * pageBins * 2 // 64 KiB
)

type (
	page  [pageBins]uint16
	chunk *[chunkPages]page
)

// Memory is the memory that all tables take for the bins of their
// sketches, in chunks, up to one limit. A table takes a chunk once in 512 pages
// and gives all of its back when it is reset, so the lock is not hot, and what
// one cycle or drainer does not need the others have.
type Memory struct {
	limit     int           // chunks
	coarsened atomic.Uint64 // see Coarsened

	mu      sync.Mutex
	free    []chunk
	made    int
	charged int // chunks that others hold in another form
}

// NewMemory returns memory for that many bytes. None is set aside yet.
func NewMemory(bytes int) *Memory { return &Memory{limit: bytes / ChunkBytes} }

// Taken is the bytes that tables hold at present.
func (m *Memory) Taken() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return (m.made - len(m.free) + m.charged) * ChunkBytes
}

// Coarsened is how often a span was put into a higher bin than its own, because
// there was no memory for that bin.
func (m *Memory) Coarsened() uint64 { return m.coarsened.Load() }

// take returns a chunk, or nil at the limit. It holds what it held when it was
// given back.
func (m *Memory) take() chunk {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.free); n > 0 {
		c := m.free[n-1]
		m.free = m.free[:n-1]
		return c
	}
	if m.made+m.charged >= m.limit {
		return nil
	}
	m.made++
	return new([chunkPages]page)
}

// Charge sets as much as some chunks aside for whoever keeps bins in a form of its own.
// It reports false where there is no room for them.
func (m *Memory) Charge(chunks int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if chunks > m.limit-m.charged-(m.made-len(m.free)) {
		return false
	}
	m.charged += chunks
	if beyond := m.made + m.charged - m.limit; beyond > 0 { // chunks that are free
		kept := len(m.free) - beyond
		clear(m.free[kept:])
		m.free, m.made = m.free[:kept], m.made-beyond
	}
	return true
}

// Discharge gives back what was charged.
func (m *Memory) Discharge(chunks int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charged -= chunks
}

func (m *Memory) give(chunks []chunk) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = append(m.free, chunks...)
}

// Arena is the pages of one table, numbered in the order in which they were
// drawn. It has the table's one writer.
type Arena struct {
	memory  *Memory
	chunks  []chunk
	next    uint32 // number of the next page; 0 is none, so that a page of the first chunk stays unused
	pinched uint32 // sketches that got no page at all
	carries map[carryKey]uint64
}

// NewArena is one without pages.
func NewArena(memory *Memory) Arena { return Arena{memory: memory} }

// carryKey is one counter of 16 bits: of a page, by its number and the place in
// it, or of a pinched sketch, by its number and the bin.
type carryKey uint64

func pageKey(ref uint32, place uint) carryKey { return carryKey(ref)*pageBins + carryKey(place) }

func pinchedKey(id uint32, bin uint) carryKey { return 1<<63 | carryKey(id)<<16 | carryKey(bin) }

func (a *Arena) page(ref uint32) *page { return &a.chunks[ref/chunkPages][ref%chunkPages] }

// draw returns the number of an empty page, or 0 where there is no memory.
func (a *Arena) draw() uint32 {
	if int(a.next/chunkPages) == len(a.chunks) {
		c := a.memory.take()
		if c == nil {
			return 0
		}
		a.chunks = append(a.chunks, c)
	}
	ref := max(a.next, 1)
	a.next = ref + 1
	*a.page(ref) = page{}
	return ref
}

// count adds one span. It is the hot path: the carry is taken once in 65536.
func (a *Arena) count(ref uint32, bin uint) {
	place := bin % pageBins
	counter := &a.page(ref)[place]
	*counter++
	if *counter == 0 {
		a.carry(pageKey(ref, place), 1)
	}
}

// raise adds many spans.
func (a *Arena) raise(ref uint32, place uint, spans uint64) {
	counter := &a.page(ref)[place]
	sum := uint64(*counter) + spans
	*counter = uint16(sum)
	a.carry(pageKey(ref, place), sum>>16)
}

// empty takes all spans out of a page and returns how many there were.
func (a *Arena) empty(ref uint32) (spans uint64) {
	for place, counter := range a.page(ref) {
		spans += uint64(counter) + a.uncarry(pageKey(ref, uint(place)))
	}
	*a.page(ref) = page{}
	return spans
}

// carry keeps what a counter could not: times 65536. A counter that wraps has
// counted 65536 spans since the last time, so the map stays small.
func (a *Arena) carry(key carryKey, times uint64) {
	if times == 0 {
		return
	}
	if a.carries == nil {
		a.carries = map[carryKey]uint64{}
	}
	a.carries[key] += times
}

// carried is what was carried for a counter, in spans.
func (a *Arena) carried(key carryKey) uint64 { return a.carries[key] << 16 }

// uncarry forgets what was carried and returns it.
func (a *Arena) uncarry(key carryKey) uint64 {
	spans := a.carried(key)
	delete(a.carries, key)
	return spans
}

// Reset gives every page back.
func (a *Arena) Reset() {
	a.memory.give(a.chunks)
	clear(a.chunks)
	clear(a.carries)
	a.chunks, a.next, a.pinched = a.chunks[:0], 0, 0
}
