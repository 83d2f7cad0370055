package bodies

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Pool is the memory for bodies.
type Pool struct {
	maxBody   int64 // maximum bytes of one body
	maxSender int64 // maximum bytes of all bodies of a sender
	memory    *memory.Pool
}

// NewPool returns a pool of maxTotal bytes for bodies of at most maxBody bytes.
func NewPool(maxBody, maxTotal int) Pool {
	return Pool{
		maxBody: int64(maxBody), maxSender: int64(max(maxTotal/2, maxBody+1)),
		memory: memory.NewPool(int64(maxTotal), spareBodies),
	}
}

// Body is a request body in memory.
type Body struct {
	Bytes       []byte         // a prefix of buffer
	unread      []byte         // rest of Bytes for the reader of NewReader
	buffer      *memory.Buffer // nil before the first byte is read and after Release
	senderBytes *atomic.Int64  // bytes of all bodies of the same sender; nil if the sender is unknown
}

const (
	// FirstBuffer is the initial capacity of a body, whatever its Content-Length. The capacity grows only with the
	// received bytes. Otherwise a few requests with a large Content-Length and no body could reserve all memory.
	FirstBuffer = 64 << 10
	// spareBodies is the maximum number of buffers that are kept for reuse.
	spareBodies = 16
)

var (
	// ErrNoRoom is the error of a body that does not fit into the free memory. The Body has the part that was read.
	ErrNoRoom = errors.New("read body: all memory for bodies is in use")
	// ErrTooLarge is the error of a body over the limit for one body. It is a kind of ErrNoRoom.
	ErrTooLarge = fmt.Errorf("%w, or the body is larger than the maximum", ErrNoRoom)
)

// Read reads a body to its end. length is the Content-Length, or -1 if it is unknown. senderBytes has the bytes of all
// bodies of the sender; they can use half of the pool, or one body if that is more. senderBytes can be nil.
func (p *Pool) Read(from io.Reader, length int64, senderBytes *atomic.Int64) (*Body, error) {
	body := &Body{senderBytes: senderBytes}
	if length > p.maxBody {
		return body, ErrTooLarge
	}
	maxCapacity := p.maxBody + 1
	if length >= 0 {
		maxCapacity = length + 1 // one more byte, so that the read that returns io.EOF does not grow the buffer
	}
	err := p.fill(body, from, maxCapacity)
	body.unread = body.Bytes
	return body, err
}

// Take returns an empty body with a capacity of size bytes, or nil if there is no memory for it.
func (p *Pool) Take(size int) *Body {
	buffer := p.memory.Take(size)
	if buffer == nil {
		return nil
	}
	return &Body{buffer: buffer, Bytes: buffer.Bytes()[:0]}
}

// Used returns the bytes of all bodies in use.
func (p *Pool) Used() int64 { return p.memory.Used() }

// DropSpares frees the buffers that are kept for reuse.
func (p *Pool) DropSpares() { p.memory.DropSpares() }

// fill reads a body to its end. It doubles the capacity as necessary, up to maxCapacity.
func (p *Pool) fill(body *Body, from io.Reader, maxCapacity int64) error {
	for {
		read := int64(len(body.Bytes))
		isFull := read == int64(cap(body.Bytes))
		switch {
		case isFull && read >= maxCapacity:
			return ErrTooLarge
		case isFull && !p.grow(body, int(min(max(FirstBuffer, 2*read), maxCapacity))):
			return ErrNoRoom
		}
		n, err := from.Read(body.Bytes[read:cap(body.Bytes)])
		body.Bytes = body.Bytes[:int(read)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err //nolint:wrapcheck // the caller checks its type
		}
	}
}

// grow raises the capacity of a body to size bytes, and reports whether there is memory for it.
func (p *Pool) grow(body *Body, size int) bool {
	more := int64(size - cap(body.Bytes))
	if body.charge(more) > p.maxSender {
		body.charge(-more)
		return false
	}
	read := len(body.Bytes)
	switch grown := p.memory.Take(size); { // usually a spare buffer
	case grown != nil:
		copy(grown.Bytes(), body.Bytes)
		if body.buffer != nil {
			body.buffer.Release()
		}
		body.buffer = grown
	case body.buffer == nil || !body.buffer.Grow(size, read): // there may be no memory for both buffers
		body.charge(-more)
		return false
	}
	body.Bytes = body.buffer.Bytes()[:read:size]
	return true
}

// charge adds to the bytes of all bodies of the sender, and returns the sum. It returns 0 if the sender is unknown.
func (b *Body) charge(bytes int64) int64 {
	if b.senderBytes == nil {
		return 0
	}
	return b.senderBytes.Add(bytes)
}

// Release returns the memory of the body to the pool. It can be called repeatedly.
func (b *Body) Release() {
	b.charge(-int64(cap(b.Bytes)))
	b.Bytes, b.unread = nil, nil
	if b.buffer != nil {
		b.buffer.Release()
		b.buffer = nil
	}
}

// NewReader returns a reader that owns the body. It releases the body when it has reached the end, or when it is closed.
// http.Transport can close it repeatedly, even after the request has ended.
func (b *Body) NewReader() io.ReadCloser { return &bodyReader{body: b} }

type bodyReader struct {
	mu       sync.Mutex // http.Transport may close the reader while another of its goroutines reads
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
