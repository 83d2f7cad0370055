package apm

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// bodyPool is the buffers that requests are read into. All of them together hold no more
// than the memory's limit; a request that finds no room is not counted, and streams
// through.
type bodyPool struct {
	maxBody int64
	memory  *memory.Pool
}

func newBodyPool(maxBody, maxTotal int) bodyPool {
	return bodyPool{maxBody: int64(maxBody), memory: memory.NewPool(int64(maxTotal), spareBodies)}
}

// body is a request's body in memory. One goroutine at a time has it.
type body struct {
	buffer *memory.Buffer // nil before a byte is read, and after the release
	buf    []byte         // what was read, a part of the buffer
	send   []byte         // what is left to be sent
}

// firstBuffer is what a body of unknown length begins with, spareBodies how many buffers
// wait for another body.
const (
	firstBuffer = 64 << 10
	spareBodies = 16
)

// trustedLength is up to which length room is taken because a request states it. Beyond
// that its bytes have to come: otherwise three requests that state the maximum and send
// nothing would take all room.
const trustedLength = 1 << 20

// errNoRoom says that a body did not fit. What was read of it is in the body.
var errNoRoom = errors.New("read body: no room")

// read reads a body to its end. length is what the request said, -1 for nothing.
// After errNoRoom what was read must still be forwarded, and the rest after it.
func (b *bodyPool) read(from io.Reader, length int64) (*body, error) {
	held := &body{}
	if length > b.maxBody {
		return held, errNoRoom
	}
	size := int64(firstBuffer)
	if length >= 0 {
		size = min(length, trustedLength) + 1 // so that the end is met without growing
	}
	err := b.fill(held, from, size)
	held.send = held.buf
	return held, err
}

// fill reads into a buffer that begins with a size and doubles.
func (b *bodyPool) fill(held *body, from io.Reader, size int64) error {
	for {
		if len(held.buf) == cap(held.buf) {
			if !b.grow(held, min(size, b.maxBody+1)) {
				return errNoRoom
			}
			size = 2 * int64(cap(held.buf))
		}
		n, err := from.Read(held.buf[len(held.buf):cap(held.buf)])
		held.buf = held.buf[:len(held.buf)+n]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow makes room for so many bytes in all, or reports that there is none.
func (b *bodyPool) grow(held *body, size int64) bool {
	read := len(held.buf)
	if int64(read) >= size {
		return false
	}
	if held.buffer == nil {
		held.buffer = b.memory.Take(int(size))
	} else if !held.buffer.Grow(int(size), read) {
		return false
	}
	if held.buffer == nil {
		return false
	}
	held.buf = held.buffer.Bytes()[:read]
	return true
}

// release gives the body's memory back. It may be called repeatedly.
func (h *body) release() {
	h.buf, h.send = nil, nil
	if h.buffer != nil {
		h.buffer.Release()
		h.buffer = nil
	}
}

// newReader returns a reader that the body belongs to from now on. It releases the body at
// its end, or when it is closed, which the transport may do after the request has ended, and
// repeatedly.
func (h *body) newReader() io.ReadCloser { return &bodyReader{body: h} }

type bodyReader struct {
	mu       sync.Mutex // the transport may close it while another of its goroutines reads
	body     *body
	isClosed bool
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.isClosed:
		return 0, io.ErrClosedPipe
	case len(r.body.send) == 0:
		r.body.release()
		return 0, io.EOF
	}
	n := copy(p, r.body.send)
	r.body.send = r.body.send[n:]
	return n, nil
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isClosed = true
	r.body.release()
	return nil
}

// readTimeout is how long a tracer may take to send a body: the agent's own.
const readTimeout = 5 * time.Second

// hold reads a request's body into memory; the caller releases it. Where that is not
// possible hold finishes the request itself, counts why, and returns nil: a body that finds
// no room streams through, and one that breaks off is answered.
func (s *Server) hold(w http.ResponseWriter, r *http.Request, tooLarge, incomplete *atomic.Uint64) *body {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTimeout)) // none where it can't be set
	held, err := s.bodies.read(r.Body, r.ContentLength)
	if err != nil && !errors.Is(err, errNoRoom) {
		incomplete.Add(1)
		held.release()
		refuse(w, err) // the deadline stays: nothing more is waited for
		return nil
	}
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		tooLarge.Add(1)
		s.streamJoined(w, r, held)
		return nil
	}
	return held
}
