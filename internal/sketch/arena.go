package sketch

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
