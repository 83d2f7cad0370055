package bodies

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Pool is the buffers that requests are read into. All of them together hold no more
// than the memory's limit.
type Pool struct {
	maxBody int64
	memory  *memory.Pool
}

// NewPool has so many bytes for all bodies, and reads none that is longer than maxBody.
func NewPool(maxBody, maxTotal int) Pool {
	return Pool{maxBody: int64(maxBody), memory: memory.NewPool(int64(maxTotal), spareBodies)}
}

// Body is a request's body in memory. One goroutine at a time has it.
type Body struct {
	Bytes  []byte         // what was read, a part of the buffer
	Send   []byte         // what is left to be sent
	buffer *memory.Buffer // nil before a byte is read, and after the release
}

// FirstBuffer is what a body of unknown length begins with, spareBodies how many buffers
// wait for another body.
const (
	FirstBuffer = 64 << 10
	spareBodies = 16
)

// TrustedLength is up to which length room is taken because a request states it. Beyond
// that its bytes have to come: otherwise three requests that state the maximum and send
// nothing would take all room.
const TrustedLength = 1 << 20

// ErrNoRoom says that a body did not fit; what was read of it is in the body. ErrTooLarge
// is the same of one that never will.
var (
	ErrNoRoom   = errors.New("read body: no room")
	ErrTooLarge = fmt.Errorf("%w for one that is so long", ErrNoRoom)
)

// Read reads a body to its end. length is what the request said, -1 for nothing.
func (b *Pool) Read(from io.Reader, length int64) (*Body, error) {
	held := &Body{}
	if length > b.maxBody {
		return held, ErrTooLarge
	}
	size := int64(FirstBuffer)
	if length >= 0 {
		size = min(length, TrustedLength) + 1 // so that the end is met without growing
	}
	err := b.fill(held, from, size)
	held.Send = held.Bytes
	return held, err
}

// Take returns a body with room for so many bytes and none in it, nil where there is no
// room.
func (b *Pool) Take(size int) *Body {
	buffer := b.memory.Take(size)
	if buffer == nil {
		return nil
	}
	return &Body{buffer: buffer, Bytes: buffer.Bytes()[:0]}
}

// Held is the bytes of all bodies that somebody has.
func (b *Pool) Held() int64 { return b.memory.Held() }

// DropSpares lets go of the buffers that nobody has.
func (b *Pool) DropSpares() { b.memory.DropSpares() }

// fill reads into a buffer that begins with a size and doubles.
func (b *Pool) fill(held *Body, from io.Reader, size int64) error {
	for {
		if len(held.Bytes) == cap(held.Bytes) {
			if err := b.grow(held, min(size, b.maxBody+1)); err != nil {
				return err
			}
			size = 2 * int64(cap(held.Bytes))
		}
		n, err := from.Read(held.Bytes[len(held.Bytes):cap(held.Bytes)])
		held.Bytes = held.Bytes[:len(held.Bytes)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err //nolint:wrapcheck // the reader's own
		}
	}
}

// grow makes room for so many bytes in all.
func (b *Pool) grow(held *Body, size int64) error {
	read := len(held.Bytes)
	if int64(read) >= size {
		return ErrTooLarge
	}
	if held.buffer == nil {
		held.buffer = b.memory.Take(int(size))
	} else if !held.buffer.Grow(int(size), read) {
		return ErrNoRoom
	}
	if held.buffer == nil {
		return ErrNoRoom
	}
	held.Bytes = held.buffer.Bytes()[:read]
	return nil
}

// Release gives the body's memory back. It may be called repeatedly.
func (h *Body) Release() {
	h.Bytes, h.Send = nil, nil
	if h.buffer != nil {
		h.buffer.Release()
		h.buffer = nil
	}
}

// NewReader returns a reader that the body belongs to from now on. It releases the body at
// its end, or when it is closed, which the transport may do after the request has ended, and
// repeatedly.
func (h *Body) NewReader() io.ReadCloser { return &bodyReader{body: h} }

type bodyReader struct {
	mu       sync.Mutex // the transport may close it while another of its goroutines reads
	body     *Body
	isClosed bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.isClosed:
		return 0, io.ErrClosedPipe
	case len(r.body.Send) == 0:
		r.body.Release()
		return 0, io.EOF
	}
	n := copy(p, r.body.Send)
	r.body.Send = r.body.Send[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isClosed = true
	r.body.Release()
	return nil
}
