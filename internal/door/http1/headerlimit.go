package http1

import (
	"errors"
	"sync/atomic"
)

// MaxHeaderBytes and MaxHeaderLines bound a request's header: several times what any
// tracer sends, and a small part of what an agent would take, since each connection may
// hold one. (net/http takes 4 KiB more.)
const (
	MaxHeaderBytes = 16 << 10
	MaxHeaderLines = 128
)

// ErrManyLines closes a tracer's connection.
var ErrManyLines = errors.New("read header: more lines than any tracer sends")

// HeaderLimit bounds the lines of a header while it is received. net/http bounds only its
// bytes, and keeps a hundred of its own for a line of four: a few dozen headers that are
// never finished would take the memory of all requests.
//
// The goroutine that reads from the connection counts lines. The handler sets Done, which
// another goroutine may read while it waits for the tracer to leave.
type HeaderLimit struct {
	Done    atomic.Bool // the header is received; what follows is none
	begun   bool        // a line came that is not empty; empty ones may precede a header
	isEmpty bool        // the current line, so far
	lines   int
}

// Reset prepares for the next request.
func (h *HeaderLimit) Reset() {
	h.begun, h.isEmpty, h.lines = false, false, 0
	h.Done.Store(false)
}

// Count counts the lines of what was received. It reports false beyond the limit.
func (h *HeaderLimit) Count(b []byte) bool {
	for _, c := range b {
		switch {
		case c == '\n' && h.isEmpty && h.begun:
			h.Done.Store(true)
			return true
		case c == '\n':
			h.isEmpty = true
			if h.lines++; h.lines > MaxHeaderLines {
				return false
			}
		case c != '\r':
			h.begun, h.isEmpty = true, false
		}
	}
	return true
}
