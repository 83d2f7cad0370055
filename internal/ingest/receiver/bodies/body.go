package bodies

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Pool is the memory for request bodies. It limits the bytes of one body, of all bodies, and of the bodies of one sender.
type Pool struct {
	maxBody      int64 // maximum bytes of one body
	maxPerSender int64 // maximum capacity of all bodies of one sender
	memory       *memory.Pool
}

// NewPool returns a pool of maxTotal bytes for bodies of at most maxBody bytes. The bodies of one sender get at most half
// of the pool, or the memory of one body if that is more.
func NewPool(maxBody, maxTotal int) Pool {
	return Pool{
		maxBody: int64(maxBody), maxPerSender: int64(max(maxTotal/2, maxBody+1)),
		memory: memory.NewPool(int64(maxTotal), spareBodies),
	}
}

// Body is a request body in memory.
type Body struct {
	Bytes       []byte         // a prefix of buffer
	unread      []byte         // rest of Bytes for the reader of NewReader
	buffer      *memory.Buffer // nil before the first byte is read and after Release
	senderBytes *atomic.Int64  // capacity of all bodies of the same sender; nil if the sender is unknown
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

// Read reads a body from source until io.EOF. contentLength is -1 if it is unknown. senderBytes counts the memory
// of all bodies of one sender; nil disables the limit per sender. After an error, the body contains the bytes that
// were read, and the caller must release it too.
func (p *Pool) Read(source io.Reader, contentLength int64, senderBytes *atomic.Int64) (*Body, error) {
	body := &Body{senderBytes: senderBytes}
	if contentLength > p.maxBody {
		return body, ErrTooLarge
	}
	maxLength := p.maxBody
	if contentLength >= 0 {
		maxLength = contentLength
	}
	maxCapacity := maxLength + 1 // the last Read needs one free byte, even if it only returns io.EOF
	err := p.fill(body, source, maxCapacity)
	body.unread = body.Bytes // for NewReader
	return body, err
}

// readDecompressed reads a body, whose length is unknown, from a decompressor. It does not apply the limit per sender.
func (p *Pool) readDecompressed(source io.Reader) (*Body, error) { return p.Read(source, -1, nil) }

// Take returns an empty body with a capacity of size bytes. It returns nil if the pool has too little free memory.
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

// fill appends data from source to the body until io.EOF. When the buffer of the body is full, fill enlarges it, up
// to maxCapacity bytes. It returns an error if that is not enough, or if no memory is free.
func (p *Pool) fill(body *Body, source io.Reader, maxCapacity int64) error {
	for {
		if len(body.Bytes) == cap(body.Bytes) {
			if err := p.grow(body, maxCapacity); err != nil {
				return err
			}
		}
		length := len(body.Bytes)
		n, err := source.Read(body.Bytes[length:cap(body.Bytes)])
		body.Bytes = body.Bytes[:length+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err //nolint:wrapcheck // the caller checks its type
		}
	}
}

// grow doubles the capacity of a full body, up to maxCapacity bytes. It returns ErrTooLarge if the body already has
// maxCapacity bytes. It returns ErrNoRoom if the pool has too little free memory, or if all bodies of the sender
// together would exceed their limit.
func (p *Pool) grow(body *Body, maxCapacity int64) error {
	length := int64(len(body.Bytes))
	if length >= maxCapacity {
		return ErrTooLarge
	}
	capacity := min(max(FirstBuffer, 2*length), maxCapacity)
	addedBytes := capacity - length
	bytesOfSender := body.chargeSender(addedBytes)
	if bytesOfSender > p.maxPerSender {
		body.chargeSender(-addedBytes)
		return ErrNoRoom
	}
	isResized := p.resize(body, int(capacity))
	if !isResized {
		body.chargeSender(-addedBytes)
		return ErrNoRoom
	}
	return nil
}

// resize raises the capacity of a body and keeps its data. It returns false, and does not change the body, if the
// pool has too little free memory.
func (p *Pool) resize(body *Body, capacity int) bool {
	newBuffer := p.memory.Take(capacity) // usually a spare buffer
	if newBuffer == nil {
		return body.extendBuffer(capacity) // needs free memory only for the added bytes
	}
	length := copy(newBuffer.Bytes(), body.Bytes)
	if body.buffer != nil {
		body.buffer.Release()
	}
	body.buffer = newBuffer
	body.Bytes = newBuffer.Bytes()[:length:capacity]
	return true
}

// extendBuffer raises the capacity of b by enlarging its buffer, which needs less free memory than a second buffer.
// It returns false if b has no buffer, or if the pool has too little free memory.
func (b *Body) extendBuffer(capacity int) bool {
	if b.buffer == nil {
		return false
	}
	length := len(b.Bytes)
	hasGrown := b.buffer.Grow(capacity, length)
	if !hasGrown {
		return false
	}
	b.Bytes = b.buffer.Bytes()[:length:capacity]
	return true
}

// chargeSender adds a number of bytes to the counter of the sender, and returns the sum. It returns 0 if the sender is
// unknown.
func (b *Body) chargeSender(bytes int64) int64 {
	if b.senderBytes == nil {
		return 0
	}
	return b.senderBytes.Add(bytes)
}

// Release returns the memory of the body to the pool. It can be called more than once.
func (b *Body) Release() {
	b.chargeSender(-int64(cap(b.Bytes)))
	b.Bytes = nil
	b.unread = nil
	if b.buffer != nil {
		b.buffer.Release()
		b.buffer = nil
	}
}

// NewReader returns a reader of the body. The reader releases the body when it reaches the end or is closed. It can be
// closed more than once, even after the request has ended.
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
