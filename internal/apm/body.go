package apm

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// bodies are the buffers that requests are read into. All of them together hold
// no more than room; a request that finds none is not counted, and streams through.
type bodies struct {
	most int64 // bytes of one body
	room int64 // of all
	used atomic.Int64
	free sync.Pool // of *body
}

// body is a request's body in memory. It goes back when the request's goroutine
// and everyone that it was lent to have let go of it.
type body struct {
	bodies *bodies
	buf    []byte
	send   []byte // what is left of it to be sent
	holds  atomic.Int32
}

// firstBuffer is what a body of unknown length begins with, keptBuffer the
// largest that is kept for another.
const (
	firstBuffer = 64 << 10
	keptBuffer  = 1 << 20
)

// trustedLength is up to where a request's own word for its length is enough to take
// the room. For more of it its bytes have to come: three that claim the most, and
// send nothing, would leave nobody any.
const trustedLength = 1 << 20

// errNoRoom says that a body did not fit. What was read of it is in the body.
var errNoRoom = errors.New("read body: no room")

// read reads a body to its end. length is what the request said, -1 for nothing.
// After errNoRoom what was read must still be forwarded, and the rest after it.
func (b *bodies) read(from io.Reader, length int64) (*body, error) {
	held, _ := b.free.Get().(*body)
	if held == nil {
		held = &body{bodies: b}
	}
	held.holds.Store(1)
	if !b.charge(int64(cap(held.buf))) {
		held.buf = nil // what it had is not paid for any more
	}
	held.buf = held.buf[:0]
	held.send = held.buf
	if length > b.most {
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

func (b *bodies) charge(n int64) bool {
	if b.used.Add(n) > b.room {
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
	if size = min(size, h.bodies.most+1); size <= int64(cap(h.buf)) || !h.bodies.charge(size-int64(cap(h.buf))) {
		return false
	}
	h.buf = append(make([]byte, 0, size), h.buf...)
	return true
}

// release lets go of the body. The last to do so gives it back.
func (h *body) release() {
	if h.holds.Add(-1) > 0 {
		return
	}
	h.bodies.used.Add(-int64(cap(h.buf)))
	if cap(h.buf) <= keptBuffer {
		h.bodies.free.Put(h)
	}
}

// lend returns a reader of the body. It holds the body until it is closed, which
// whoever sends it may do later than the request ends, and more than once.
func (h *body) lend() io.ReadCloser {
	h.holds.Add(1)
	return &loan{body: h}
}

// loan is one reader of a body.
type loan struct {
	mu   sync.Mutex // a sender may close while another of its goroutines reads
	body *body
	from *bytes.Reader
}

func (l *loan) Read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.body == nil {
		return 0, io.ErrClosedPipe
	}
	if l.from == nil {
		l.from = bytes.NewReader(l.body.send) // as it is by the time that it is sent
	}
	return l.from.Read(p)
}

func (l *loan) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.body != nil {
		l.body.release()
		l.body = nil
	}
	return nil
}
