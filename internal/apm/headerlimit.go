package apm

import (
	"errors"
	"sync/atomic"
)

// maxHeaderBytes and maxHeaderLines bound a request's header: several times what any
// tracer sends, and a small part of what an agent would take, since each connection may
// hold one. (net/http takes 4 KiB more.)
const (
	maxHeaderBytes = 16 << 10
	maxHeaderLines = 128
)

// errManyLines closes a tracer's connection.
var errManyLines = errors.New("read header: more lines than any tracer sends")

// headerLimit bounds the lines of a header while it is received. net/http bounds only its
// bytes, and keeps a hundred of its own for a line of four: a few dozen headers that are
// never finished would take the memory of all requests.
//
// The goroutine that reads from the connection counts lines. The handler sets done, which
// another goroutine may read while it waits for the tracer to leave.
type headerLimit struct {
	done    atomic.Bool // the header is received; what follows is none
	begun   bool        // a line came that is not empty; empty ones may precede a header
	isEmpty bool        // the current line, so far
	lines   int
}

// reset prepares for the next request.
func (h *headerLimit) reset() {
	h.begun, h.isEmpty, h.lines = false, false, 0
	h.done.Store(false)
}

// count counts the lines of what was received. It reports false beyond the limit.
func (h *headerLimit) count(b []byte) bool {
	for _, c := range b {
		switch {
		case c == '\n' && h.isEmpty && h.begun:
			h.done.Store(true)
			return true
		case c == '\n':
			h.isEmpty = true
			if h.lines++; h.lines > maxHeaderLines {
				return false
			}
		case c != '\r':
			h.begun, h.isEmpty = true, false
		}
	}
	return true
}
