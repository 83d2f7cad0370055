package bodies

import (
	"errors"
	"io"
	"os"
	"sync"
)

// Receipt finds out whether a connection's tracer has received the last answer. That the
// answer was written does not say so: a tracer whose time is over leaves with the answer
// unread in its socket. What says so is its next request, since a tracer that did not get
// an answer sends nothing more on that connection; or its leaving with nothing unread: if
// there is, the kernel reports a reset and not an end.
//
// The goroutine of the connection uses it, and while a request is under way also the one
// that watches for the tracer's leaving; whoever closes the connection may be a third.
type Receipt struct {
	Bodies *Counted
	// EndOf says what the end of what the tracer sends means by now: io.EOF where it has all that was
	// written. It leaves any other error as it is.
	EndOf func(error) error

	mu      sync.Mutex
	sum     uint64 // of the counted body whose answer was written, 0 for none
	isIdle  bool   // the answer was written to its end
	hasLeft bool   // the tracer has, with nothing unread that was written until then
	isOver  bool   // something was written behind that, or the connection is closed
}

// Await takes over an open body whose answer was written.
func (r *Receipt) Await(sum uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isOver {
		r.Bodies.Close(sum, false)
		return
	}
	r.sum = sum
}

// Writing notes that a piece of an answer is about to be written.
func (r *Receipt) Writing() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOver = r.isOver || r.hasLeft
}

// Idle notes that nothing is left to be written. Where the tracer was seen to leave meanwhile, a piece may
// have been about to be written, so the kernel is asked again whether it has all of them.
func (r *Receipt) Idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isIdle = true
	if r.hasLeft && !r.isOver {
		r.resolve(errors.Is(r.EndOf(io.EOF), io.EOF))
	}
}

// NextRequest notes that the tracer sends another one.
func (r *Receipt) NextRequest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isIdle = false
	r.resolve(true)
}

// Failed notes with what reading from the tracer failed.
func (r *Receipt) Failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded): // somebody has stopped watching
	case !errors.Is(r.EndOf(err), io.EOF):
		r.isOver = true
	case r.isIdle && !r.isOver:
		r.resolve(true)
	default:
		r.hasLeft = true
	}
}

// Closed notes that nothing more will be known.
func (r *Receipt) Closed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOver = true
	r.resolve(false)
}

// resolve closes the body, if there is one.
func (r *Receipt) resolve(hasAnswer bool) {
	if r.sum != 0 {
		r.Bodies.Close(r.sum, hasAnswer)
		r.sum = 0
	}
}
