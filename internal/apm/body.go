package apm

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
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

// body is a request's body in memory. It goes back to the pool when the request's goroutine
// has released it and all of its readers are closed.
type body struct {
	buffer *memory.Buffer // nil before a byte is read
	buf    []byte         // what was read, a part of the buffer
	send   []byte         // what is left to be sent
	refs   atomic.Int32
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
	held.refs.Store(1)
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

// release gives up one reference. With the last one nothing of the body is left.
func (h *body) release() {
	if h.refs.Add(-1) > 0 {
		return
	}
	h.buf, h.send = nil, nil
	if h.buffer != nil {
		h.buffer.Release()
	}
}

// newReader returns a reader of the body. It holds a reference until it is closed, which
// the transport may do after the request has ended, and repeatedly.
func (h *body) newReader() io.ReadCloser {
	h.refs.Add(1)
	return &bodyReader{body: h}
}

// bodyReader is one reader of a body. It lets go of the body at its end.
type bodyReader struct {
	mu    sync.Mutex // the transport may close it while another of its goroutines reads
	body  *body
	from  *bytes.Reader
	ended error // why there is no body any more
}

func (r *bodyReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.body == nil {
		return 0, r.ended
	}
	if r.from == nil {
		r.from = bytes.NewReader(r.body.send) // what of it is sent is decided by now
	}
	n, err := r.from.Read(p)
	if err != nil {
		r.end(err)
	}
	return n, err
}

func (r *bodyReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end(io.ErrClosedPipe)
	return nil
}

func (r *bodyReader) end(why error) {
	if r.body != nil {
		r.body.release()
		r.body, r.from, r.ended = nil, nil, why
	}
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
		// The deadline stays: nothing more is waited for. The answer is the agent's.
		if errors.Is(err, os.ErrDeadlineExceeded) {
			http.Error(w, "timeout", http.StatusRequestTimeout)
		} else {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
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
