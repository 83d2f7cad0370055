package memory

import "sync"

// Pool is a set of buffers with a common limit on their bytes. Take reserves the bytes of a Buffer, and Release frees
// them.
//
// A pool keeps some of the released buffers for reuse. These spare buffers count against the limit as well. A Pool is
// safe for concurrent use.
type Pool struct {
	limit     int64
	maxSpares int

	mu     sync.Mutex
	used   int64    // bytes of buffers in use
	spare  [][]byte // released buffers, for reuse
	spared int64    // bytes of spare
}

// maxSpare is the maximum length of a buffer that is kept for reuse.
const maxSpare = 1 << 20

// NewPool returns a pool of up to limit bytes that keeps up to spares released buffers for reuse.
func NewPool(limit int64, spares int) *Pool { return &Pool{limit: limit, maxSpares: spares} }

// Used returns the bytes of all buffers in use.
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

// Take returns a buffer of at least size bytes, or nil if it would exceed the limit. The content of the buffer is
// undefined.
func (p *Pool) Take(size int) *Buffer {
	if spare := p.takeSpare(size); spare != nil {
		return &Buffer{p, spare}
	}
	if !p.reserve(int64(size)) {
		return nil
	}
	return &Buffer{p, make([]byte, size)}
}

// Insist returns a buffer of at least size bytes even if it exceeds the limit. It is for the last data of a connection
// at shutdown, which the socket buffers bound.
func (p *Pool) Insist(size int) *Buffer {
	if b := p.Take(size); b != nil {
		return b
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += int64(size)
	return &Buffer{p, make([]byte, size)}
}

// Bytes returns the whole buffer. The slice is valid until Grow or Release is called.
func (b *Buffer) Bytes() []byte { return b.bytes }

// Grow makes the buffer at least size bytes long. It keeps the content of the first keep bytes. If the buffer would
// exceed the limit, Grow changes nothing and returns false.
func (b *Buffer) Grow(size, keep int) bool {
	more := size - len(b.bytes)
	if more <= 0 {
		return true
	}
	if !b.pool.reserve(int64(more)) {
		return false
	}
	grown := make([]byte, size)
	copy(grown, b.bytes[:keep])
	b.bytes = grown
	return true
}

// Release returns the bytes to the pool. The buffer is empty afterwards.
func (b *Buffer) Release() {
	p, size := b.pool, int64(len(b.bytes))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= size
	isReusable := size > 0 && size <= maxSpare
	if isReusable && len(p.spare) < p.maxSpares && p.used+p.spared+size <= p.limit {
		p.spare, p.spared = append(p.spare, b.bytes), p.spared+size
	}
	b.bytes = nil
}

// DropSpares drops all spare buffers, so that the garbage collector can free them.
func (p *Pool) DropSpares() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare, p.spared = nil, 0
}

// reserve adds size to the bytes in use, unless they would exceed the limit. It drops spare buffers as necessary.
func (p *Pool) reserve(size int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used+size > p.limit {
		return false
	}
	for p.used+p.spared+size > p.limit {
		p.removeSpare(len(p.spare) - 1)
	}
	p.used += size
	return true
}

// takeSpare returns the smallest spare buffer of size to 2*size bytes, or nil. A larger one would reserve much more
// memory than the caller needs.
func (p *Pool) takeSpare(size int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, spare := range p.spare {
		fits := len(spare) >= size && len(spare) <= 2*size
		if fits && (best < 0 || len(spare) < len(p.spare[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	spare := p.removeSpare(best)
	p.used += int64(len(spare))
	return spare
}

func (p *Pool) removeSpare(index int) []byte {
	spare, last := p.spare[index], len(p.spare)-1
	p.spare[index], p.spare[last] = p.spare[last], nil
	p.spare, p.spared = p.spare[:last], p.spared-int64(len(spare))
	return spare
}
