package memory

import "sync"

// Pool is a limit on the bytes that several holders have at a time. A holder that takes a
// Buffer is charged for it, and gives back the buffer and the charge at once.
//
// Some of what is given back is kept for who comes next, and counts against the limit as
// well: no byte of a pool is outside of it. Safe for concurrent use.
type Pool struct {
	limit     int64
	maxSpares int

	mu     sync.Mutex
	held   int64    // bytes of buffers that somebody has
	spare  [][]byte // buffers that nobody has
	spared int64    // their bytes
}

// maxSpare is the largest buffer that is kept for another holder.
const maxSpare = 1 << 20

// NewPool has so many bytes, and keeps at most so many buffers that nobody has.
func NewPool(limit int64, spares int) *Pool { return &Pool{limit: limit, maxSpares: spares} }

// Held is the bytes of all buffers that somebody has.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Buffer is bytes, and the charge for them. One goroutine at a time uses it.
type Buffer struct {
	pool  *Pool
	bytes []byte
}

// Take returns a buffer of at least size bytes, or nil where there is no room for it. Its
// content has no meaning.
func (p *Pool) Take(size int) *Buffer {
	if spare := p.takeSpare(size); spare != nil {
		return &Buffer{p, spare}
	}
	if !p.charge(int64(size)) {
		return nil
	}
	return &Buffer{p, make([]byte, size)}
}

// Insist returns a buffer also where there is no room: for the last ones.
func (p *Pool) Insist(size int) *Buffer {
	if b := p.Take(size); b != nil {
		return b
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held += int64(size)
	return &Buffer{p, make([]byte, size)}
}

// Bytes are the buffer's, all of them, until it is grown or released.
func (b *Buffer) Bytes() []byte { return b.bytes }

// Grow makes the buffer size bytes long and keeps the first of them, as many as said. It
// reports false, and changes nothing, where there is no room.
func (b *Buffer) Grow(size, keep int) bool {
	more := size - len(b.bytes)
	if more <= 0 {
		return true
	}
	if !b.pool.charge(int64(more)) {
		return false
	}
	grown := make([]byte, size)
	copy(grown, b.bytes[:keep])
	b.bytes = grown
	return true
}

// Release gives back the bytes and the charge. The buffer is empty from then on.
func (b *Buffer) Release() {
	p, size := b.pool, int64(len(b.bytes))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held -= size
	if size > 0 && size <= maxSpare && len(p.spare) < p.maxSpares && p.held+p.spared+size <= p.limit {
		p.spare, p.spared = append(p.spare, b.bytes), p.spared+size
	}
	b.bytes = nil
}

// DropSpares lets go of the buffers that nobody has.
func (p *Pool) DropSpares() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare, p.spared = nil, 0
}

// charge counts so many bytes more as held, if there is room. Spares give way.
func (p *Pool) charge(size int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+size > p.limit {
		return false
	}
	for p.held+p.spared+size > p.limit {
		p.removeSpare(len(p.spare) - 1)
	}
	p.held += size
	return true
}

// takeSpare returns the smallest spare of at least size bytes, or nil. Who asks for little is not
// charged for more than twice as much.
func (p *Pool) takeSpare(size int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, spare := range p.spare {
		if len(spare) >= size && len(spare) <= 2*size && (best < 0 || len(spare) < len(p.spare[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	spare := p.removeSpare(best)
	p.held += int64(len(spare))
	return spare
}

func (p *Pool) removeSpare(at int) []byte {
	spare, last := p.spare[at], len(p.spare)-1
	p.spare[at], p.spare[last] = p.spare[last], nil
	p.spare, p.spared = p.spare[:last], p.spared-int64(len(spare))
	return spare
}
