package memory

import (
	"slices"
	"sync"
)

// Pool is a set of buffers with a common limit on their bytes. Take reserves the bytes of a Buffer, and Release frees
// them.
//
// A pool keeps some of the released buffers for reuse. These spare buffers count against the limit as well. A Pool is
// safe for concurrent use.
type Pool struct {
	limit     int64
	maxSpares int

	mu         sync.Mutex
	used       int64    // bytes of buffers in use
	spares     [][]byte // released buffers, for reuse
	spareBytes int64    // bytes of spares
}

// maxSpareLen is the maximum length of a buffer that is kept for reuse.
const maxSpareLen = 1 << 20

// NewPool returns a pool of up to limit bytes. It keeps up to maxSpares released buffers for reuse.
func NewPool(limit int64, maxSpares int) *Pool { return &Pool{limit: limit, maxSpares: maxSpares} }

// Used returns the number of bytes of all buffers in use.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Buffer is a byte slice whose length counts against the limit of a Pool. It is not safe for concurrent use.
type Buffer struct {
	pool  *Pool
	bytes []byte
}

// Take returns a buffer of at least size bytes with undefined content. It returns nil if the buffers in use would
// then exceed the limit of the pool.
func (p *Pool) Take(size int) *Buffer {
	if spare := p.takeSpare(size); spare != nil {
		return &Buffer{pool: p, bytes: spare}
	}
	isReserved := p.reserve(int64(size))
	if !isReserved {
		return nil
	}
	return &Buffer{pool: p, bytes: make([]byte, size)}
}

// TakeRegardless returns a buffer of at least size bytes with undefined content, even if the buffers in use then
// exceed the limit of the pool. The caller must limit the total size of these buffers in another way.
func (p *Pool) TakeRegardless(size int) *Buffer {
	if b := p.Take(size); b != nil {
		return b
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += int64(size)
	return &Buffer{pool: p, bytes: make([]byte, size)}
}

// Bytes returns the whole buffer. The slice is valid until Grow or Release is called.
func (b *Buffer) Bytes() []byte { return b.bytes }

// Grow makes the buffer at least size bytes long, and preserves its first keep bytes. If the buffers in use would
// then exceed the limit of the pool, it changes nothing and returns false.
func (b *Buffer) Grow(size, keep int) bool {
	additional := size - len(b.bytes)
	if additional <= 0 {
		return true
	}
	isReserved := b.pool.reserve(int64(additional))
	if !isReserved {
		return false
	}
	grown := make([]byte, size)
	copy(grown, b.bytes[:keep])
	b.bytes = grown
	return true
}

// Release returns the bytes of the buffer to the pool. The buffer is empty afterwards.
func (b *Buffer) Release() {
	b.pool.release(b.bytes)
	b.bytes = nil
}

// release removes a buffer from those in use. It keeps the buffer for reuse if the limits of the pool allow it.
func (p *Pool) release(buffer []byte) {
	size := int64(len(buffer))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= size
	isReusable := size > 0 && size <= maxSpareLen
	hasSpace := len(p.spares) < p.maxSpares && p.used+p.spareBytes+size <= p.limit
	if isReusable && hasSpace {
		p.spares = append(p.spares, buffer)
		p.spareBytes += size
	}
}

// DropSpares drops all spare buffers, so that the garbage collector can free them.
func (p *Pool) DropSpares() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares = nil
	p.spareBytes = 0
}

// reserve adds size to the number of bytes in use, and removes spare buffers until the limit of the pool permits
// it. It changes nothing and returns false if the bytes in use alone would exceed the limit.
func (p *Pool) reserve(size int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used+size > p.limit {
		return false
	}
	for p.used+p.spareBytes+size > p.limit {
		last := len(p.spares) - 1
		p.removeSpare(last)
	}
	p.used += size
	return true
}

// takeSpare returns the smallest spare buffer with at least size bytes. It returns nil if all are smaller, or if that buffer
// has more than 2*size bytes, because it would waste memory. The bytes of the returned buffer count as in use.
func (p *Pool) takeSpare(size int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	smallest := p.smallestSpare(size)
	if smallest < 0 {
		return nil
	}
	isTooLarge := len(p.spares[smallest]) > 2*size
	if isTooLarge {
		return nil
	}
	spare := p.removeSpare(smallest)
	p.used += int64(len(spare))
	return spare
}

// smallestSpare returns the index of the smallest spare buffer with at least size bytes, or -1 if there is none.
func (p *Pool) smallestSpare(size int) int {
	smallest := -1
	for i, spare := range p.spares {
		if len(spare) < size {
			continue
		}
		if smallest < 0 || len(spare) < len(p.spares[smallest]) {
			smallest = i
		}
	}
	return smallest
}

// removeSpare removes a spare buffer from the pool and returns it.
func (p *Pool) removeSpare(index int) []byte {
	spare := p.spares[index]
	p.spares = slices.Delete(p.spares, index, index+1)
	p.spareBytes -= int64(len(spare))
	return spare
}
