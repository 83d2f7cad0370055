package apm

import (
	"errors"
	"sync/atomic"
)

// maxHeaderBytes and maxHeaderLines are the most that a request's header may have:
// several times what any tracer sends, and a small part of what an agent would take,
// since it is held for each connection. (net/http takes 4 KiB more.)
const (
	maxHeaderBytes = 16 << 10
	maxHeaderLines = 128
)

// errManyLines costs a tracer its connection.
var errManyLines = errors.New("read header: more lines than any tracer sends")

// headerLines counts the lines of a header while it comes. net/http bounds its bytes
// alone, and keeps a hundred of its own for a line of four: a few dozen tracers that
// never finish theirs would have what all requests may take.
//
// Whoever reads from the connection counts. The handler may end that, while somebody
// waits for its tracer to leave.
type headerLines struct {
	read  atomic.Bool // to its end; what comes is no header
	begun bool        // something other than empty lines, which may come before it
	empty bool        // the line so far
	lines int
}

// reset is for the next request.
func (h *headerLines) reset() {
	h.begun, h.empty, h.lines = false, false, 0
	h.read.Store(false)
}

// take looks at what was read. It reports false where that is a line too many.
func (h *headerLines) take(b []byte) bool {
	for _, c := range b {
		switch {
		case c == '\n' && h.empty && h.begun:
			h.read.Store(true)
			return true
		case c == '\n':
			h.empty = true
			if h.lines++; h.lines > maxHeaderLines {
				return false
			}
		case c != '\r':
			h.begun, h.empty = true, false
		}
	}
	return true
}

// Read reads from the tracer.
func (g *guest) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if !g.header.read.Load() && !g.header.take(p[:n]) {
		return 0, errManyLines
	}
	return n, err
}
