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
)

// bodyPool is the buffers that requests are read into. All of them together hold no more
// than maxTotal bytes; a request that finds no room is not counted, and streams through.
type bodyPool struct {
	maxBody  int64
	maxTotal int64
	used     atomic.Int64
	free     sync.Pool // of *body
}

// body is a request's body in memory. It returns to the pool when the request's goroutine
// has released it and all of its readers are closed.
type body struct {
	pool *bodyPool
	buf  []byte
	send []byte // what is left to be sent
	refs atomic.Int32
}

// firstBuffer is what a body of unknown length begins with, keptBuffer the
// largest that is kept for another.
const (
	firstBuffer = 64 << 10
	keptBuffer  = 1 << 20
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
	held, _ := b.free.Get().(*body)
	if held == nil {
		held = &body{pool: b}
	}
	held.refs.Store(1)
	if !b.charge(int64(cap(held.buf))) {
		held.buf = nil // what it had is not paid for any more
	}
	held.buf = held.buf[:0]
	held.send = held.buf
	if length > b.maxBody {
		return held, errNoRoom
	}
	want := int64(firstBuffer)
	if length >= 0 {
		want = min(length, trustedLength) + 1 // so that the end is met without growing
	}
	for {
		if int64(cap(held.buf)) <= int64(len(held.buf)) || int64(cap(held.buf)) < want {
			if !held.grow(max(want, 2*int64(cap(held.buf)))) {
				held.send = held.buf
				return held, errNoRoom
			}
			want = 0
		}
		n, err := from.Read(held.buf[len(held.buf):cap(held.buf)])
		held.buf = held.buf[:len(held.buf)+n]
		if errors.Is(err, io.EOF) {
			held.send = held.buf
			return held, nil
		}
		if err != nil {
			return held, err
		}
	}
}

func (b *bodyPool) charge(n int64) bool {
	if b.used.Add(n) > b.maxTotal {
		b.used.Add(-n)
		return false
	}
	return true
}

// grow makes room for so many bytes in all, or reports that there is none.
func (h *body) grow(size int64) bool {
	if size <= int64(cap(h.buf)) {
		return true
	}
	if size = min(size, h.pool.maxBody+1); size <= int64(cap(h.buf)) || !h.pool.charge(size-int64(cap(h.buf))) {
		return false
	}
	h.buf = append(make([]byte, 0, size), h.buf...)
	return true
}

// release gives up one reference. The last one returns the body to the pool.
func (h *body) release() {
	if h.refs.Add(-1) > 0 {
		return
	}
	h.pool.used.Add(-int64(cap(h.buf)))
	if cap(h.buf) <= keptBuffer {
		h.pool.free.Put(h)
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
		r.body, r.ended = nil, why
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
