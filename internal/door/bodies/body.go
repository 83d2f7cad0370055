package bodies

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Pool is the buffers that requests are read into. All of them together hold no more
// than the memory's limit.
type Pool struct {
	maxBody  int64
	maxOfOne int64 // of one sender
	memory   *memory.Pool
}

// NewPool has so many bytes for all bodies, and reads none that is longer than maxBody.
func NewPool(maxBody, maxTotal int) Pool {
	return Pool{
		maxBody: int64(maxBody), maxOfOne: int64(max(maxTotal/2, maxBody+1)),
		memory: memory.NewPool(int64(maxTotal), spareBodies),
	}
}

// Body is a request's body in memory. One goroutine at a time has it.
type Body struct {
	Bytes  []byte         // what was read, a part of the buffer
	Send   []byte         // what is left to be sent
	buffer *memory.Buffer // nil before a byte is read, and after the release
	sender *atomic.Int64  // what its sender has of the pool; nil where nobody knows one
}

// FirstBuffer is what a body begins with, whatever its length is said to be: its bytes have to come
// before it has more. Else a few requests that state a length and send nothing would take all room.
// spareBodies is how many buffers wait for another body.
const (
	FirstBuffer = 64 << 10
	spareBodies = 16
)

// ErrNoRoom says that a body did not fit; what was read of it is in the body. ErrTooLarge
// is the same of one that never will.
var (
	ErrNoRoom   = errors.New("read body: no room")
	ErrTooLarge = fmt.Errorf("%w for one that is so long", ErrNoRoom)
)

// Read reads a body to its end. length is what the request said, -1 for nothing. What its sender has
// of the pool is half of it at most, or the room of one body.
func (b *Pool) Read(from io.Reader, length int64, of *atomic.Int64) (*Body, error) {
	held := &Body{sender: of}
	if length > b.maxBody {
		return held, ErrTooLarge
	}
	most := b.maxBody + 1
	if length >= 0 {
		most = length + 1 // so that the end is met without growing
	}
	err := b.fill(held, from, most)
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

// fill reads into a buffer that doubles until it has as many bytes as the most.
func (b *Pool) fill(held *Body, from io.Reader, most int64) error {
	for {
		if read := int64(len(held.Bytes)); read == int64(cap(held.Bytes)) {
			if read >= most {
				return ErrTooLarge
			}
			if !b.grow(held, int(min(max(FirstBuffer, 2*read), most))) {
				return ErrNoRoom
			}
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

// grow makes room for so many bytes in all, if there is any.
func (b *Pool) grow(held *Body, size int) bool {
	more := int64(size - cap(held.Bytes))
	if held.charge(more) > b.maxOfOne {
		held.charge(-more)
		return false
	}
	read := len(held.Bytes)
	switch grown := b.memory.Take(size); { // that somebody gave back, most of the time
	case grown != nil:
		copy(grown.Bytes(), held.Bytes)
		if held.buffer != nil {
			held.buffer.Release()
		}
		held.buffer = grown
	case held.buffer == nil || !held.buffer.Grow(size, read): // beside what it has there may be no room
		held.charge(-more)
		return false
	}
	held.Bytes = held.buffer.Bytes()[:read:size]
	return true
}

// charge counts so many bytes more as its sender's, and returns what that has.
func (h *Body) charge(bytes int64) int64 {
	if h.sender == nil {
		return 0
	}
	return h.sender.Add(bytes)
}

// Release gives the body's memory back. It may be called repeatedly.
func (h *Body) Release() {
	h.charge(-int64(cap(h.Bytes)))
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
