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
	maxBody   int64 // bytes of one body
	maxSender int64 // bytes of all bodies of a sender
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
	Bytes       []byte         // a part of the buffer
	unread      []byte         // by the reader of NewReader
	buffer      *memory.Buffer // nil before the first byte is read and after Release
	senderBytes *atomic.Int64  // of all bodies of its sender; nil if unknown
}

// FirstBuffer is the initial capacity of a body, whatever its Content-Length: the capacity grows only with the
// received bytes. Otherwise a few requests that announce long bodies and send nothing could take all memory.
// spareBodies is the number of buffers that are kept for reuse.
const (
	FirstBuffer = 64 << 10
	spareBodies = 16
)

// ErrNoRoom is the error of a body that does not fit into the free memory; the Body has the part that was
// read. ErrTooLarge is the ErrNoRoom of a body over the limit for one body.
var (
	ErrNoRoom   = errors.New("read body: no room")
	ErrTooLarge = fmt.Errorf("%w for one that is so long", ErrNoRoom)
)

// Read reads a body to its end. length is its Content-Length, -1 if unknown. senderBytes counts the bytes of
// all bodies of the sender, which may have half of the pool, or one body if that is more; it may be nil.
func (p *Pool) Read(from io.Reader, length int64, senderBytes *atomic.Int64) (*Body, error) {
	body := &Body{senderBytes: senderBytes}
	if length > p.maxBody {
		return body, ErrTooLarge
	}
	maxCapacity := p.maxBody + 1
	if length >= 0 {
		maxCapacity = length + 1 // so that the read that returns io.EOF needs no more capacity
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

// Held returns the bytes of all bodies in use.
func (p *Pool) Held() int64 { return p.memory.Held() }

// DropSpares frees the buffers that are kept for reuse.
func (p *Pool) DropSpares() { p.memory.DropSpares() }

// fill reads a body to its end. The capacity doubles, up to a maximum.
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
			return err //nolint:wrapcheck // the reader's own
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

// charge adds to the bytes of the sender, and returns the sum, 0 if the sender is unknown.
func (b *Body) charge(bytes int64) int64 {
	if b.senderBytes == nil {
		return 0
	}
	return b.senderBytes.Add(bytes)
}

// Release returns the body's memory. It may be called repeatedly.
func (b *Body) Release() {
	b.charge(-int64(cap(b.Bytes)))
	b.Bytes, b.unread = nil, nil
	if b.buffer != nil {
		b.buffer.Release()
		b.buffer = nil
	}
}

// NewReader returns a reader that owns the body. It releases the body at its end or when it is closed.
// http.Transport may close it after the request has ended, and repeatedly.
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
