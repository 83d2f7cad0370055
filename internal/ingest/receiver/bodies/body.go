package bodies

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Pool is the memory that bodies are read into. Its limit bounds all bodies together.
type Pool struct {
	maxBody  int64
	maxOfOne int64 // of one sender
	memory   *memory.Pool
}

// NewPool returns a pool of maxTotal bytes for bodies of at most maxBody bytes.
func NewPool(maxBody, maxTotal int) Pool {
	return Pool{
		maxBody: int64(maxBody), maxOfOne: int64(max(maxTotal/2, maxBody+1)),
		memory: memory.NewPool(int64(maxTotal), spareBodies),
	}
}

// Body is a request body in memory.
type Body struct {
	Bytes  []byte         // a part of the buffer
	unread []byte         // by NewReader's reader
	buffer *memory.Buffer // nil before the first byte is read and after Release
	sender *atomic.Int64  // bytes of the pool in use by its sender; nil if unknown
}

// FirstBuffer is the capacity that a body begins with, whatever its Content-Length is: it gets more only
// when its bytes have come. Otherwise a few requests that state a length and send nothing could take all
// memory. spareBodies is how many buffers are kept for reuse.
const (
	FirstBuffer = 64 << 10
	spareBodies = 16
)

// ErrNoRoom is the error of a body that does not fit into the memory that is free; the part that was
// read is in the Body. ErrTooLarge is an ErrNoRoom of a body over the limit.
var (
	ErrNoRoom   = errors.New("read body: no room")
	ErrTooLarge = fmt.Errorf("%w for one that is so long", ErrNoRoom)
)

// Read reads a body to its end. length is its Content-Length, -1 if unknown. of counts the bytes of its
// sender, which gets at most half of the pool, or the capacity for one body.
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
	held.unread = held.Bytes
	return held, err
}

// Take returns an empty body with a capacity of size bytes, or nil if there is no memory for it.
func (b *Pool) Take(size int) *Body {
	buffer := b.memory.Take(size)
	if buffer == nil {
		return nil
	}
	return &Body{buffer: buffer, Bytes: buffer.Bytes()[:0]}
}

// Held returns the bytes of all bodies in use.
func (b *Pool) Held() int64 { return b.memory.Held() }

// DropSpares frees the buffers that are kept for reuse.
func (b *Pool) DropSpares() { b.memory.DropSpares() }

// fill reads into a buffer that doubles up to a capacity of most bytes.
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

// grow raises the capacity to size bytes if there is memory for it.
func (b *Pool) grow(held *Body, size int) bool {
	more := int64(size - cap(held.Bytes))
	if held.charge(more) > b.maxOfOne {
		held.charge(-more)
		return false
	}
	read := len(held.Bytes)
	switch grown := b.memory.Take(size); { // usually a spare one
	case grown != nil:
		copy(grown.Bytes(), held.Bytes)
		if held.buffer != nil {
			held.buffer.Release()
		}
		held.buffer = grown
	case held.buffer == nil || !held.buffer.Grow(size, read): // there may be no memory for both buffers
		held.charge(-more)
		return false
	}
	held.Bytes = held.buffer.Bytes()[:read:size]
	return true
}

// charge adds to the bytes of its sender, and returns them.
func (h *Body) charge(bytes int64) int64 {
	if h.sender == nil {
		return 0
	}
	return h.sender.Add(bytes)
}

// Release returns the body's memory. It may be called repeatedly.
func (h *Body) Release() {
	h.charge(-int64(cap(h.Bytes)))
	h.Bytes, h.unread = nil, nil
	if h.buffer != nil {
		h.buffer.Release()
		h.buffer = nil
	}
}

// NewReader returns a reader that owns the body. It releases the body at its end or when it is closed.
// http.Transport may close it after the request has ended, and repeatedly.
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
	case len(r.body.unread) == 0:
		r.body.Release()
		return 0, io.EOF
	}
	n := copy(p, r.body.unread)
	r.body.unread = r.body.unread[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isClosed = true
	r.body.Release()
	return nil
}
