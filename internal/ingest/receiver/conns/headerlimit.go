package conns

import (
	"errors"
	"sync/atomic"
)

// MaxHeaderBytes and MaxHeaderLines bound a request header. They are several times the header of any tracer
// or SDK, and less than an agent accepts, because each connection may hold one. (net/http accepts 4 KiB
// more.)
const (
	MaxHeaderBytes = 16 << 10
	MaxHeaderLines = 128
)

var errManyLines = errors.New("read header: it has more lines than any tracer sends")

// http2Preface is the beginning of an HTTP/2 connection, whose frames have no lines.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// headerLimit bounds the lines of a request header while it is received. net/http bounds only its bytes, and
// takes a hundred bytes of memory for a line of four: a few dozen endless headers would take the memory of
// all requests.
type headerLimit struct {
	isHTTP2   atomic.Bool // then begin and end run concurrently with count, and all do nothing
	isOver    bool        // the header was received
	hasText   bool        // it has a line with text; empty lines may precede a header
	isEmpty   bool        // the current line so far
	lines     int
	inPreface int // bytes that match http2Preface; -1 if the connection is not HTTP/2
}

// begin resets the limit for the next header.
func (h *headerLimit) begin() {
	if !h.isHTTP2.Load() {
		h.isOver, h.hasText, h.isEmpty, h.lines = false, false, false, 0
	}
}

// end ends the header, because net/http has read it. Its lines may have been received together with the
// previous request, and were not counted then.
func (h *headerLimit) end() {
	if !h.isHTTP2.Load() {
		h.isOver = true
	}
}

// count counts the lines of received bytes. It reports false above the limit.
func (h *headerLimit) count(p []byte) bool {
	for i := 0; i < len(p) && h.inPreface >= 0 && h.inPreface < len(http2Preface); i++ {
		if h.inPreface++; p[i] != http2Preface[h.inPreface-1] {
			h.inPreface = -1
		} else if h.inPreface == len(http2Preface) {
			h.isHTTP2.Store(true)
		}
	}
	if h.isHTTP2.Load() || h.isOver {
		return true
	}
	for _, c := range p {
		switch {
		case c == '\n' && h.isEmpty && h.hasText:
			h.isOver = true
			return true
		case c == '\n':
			h.isEmpty = true
			if h.lines++; h.lines > MaxHeaderLines {
				return false
			}
		case c != '\r':
			h.hasText, h.isEmpty = true, false
		}
	}
	return true
}
