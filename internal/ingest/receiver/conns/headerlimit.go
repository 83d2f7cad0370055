package conns

import (
	"errors"
	"sync/atomic"
)

// MaxHeaderBytes and MaxHeaderLines limit a request header. They are several times the header of any tracer or SDK, and
// less than the Datadog agent accepts, because each connection can have a header in memory. net/http accepts 4 KiB more
// than MaxHeaderBytes.
const (
	MaxHeaderBytes = 16 << 10
	MaxHeaderLines = 128
)

var errManyLines = errors.New("read header: too many lines")

// http2Preface is the beginning of an HTTP/2 connection. The header lines of HTTP/2 are not counted.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// headerLimit limits the lines of a request header while it is received. net/http limits only its bytes, and needs a
// hundred bytes of memory for a line of four bytes: a few dozen endless headers would need the memory of all requests.
type headerLimit struct {
	// isHTTP2 makes all methods do nothing. It is atomic because HTTP/2 connections call begin and end concurrently
	// with count.
	isHTTP2   atomic.Bool
	isOver    bool // whether the whole header was received
	hasText   bool // whether a line with text was received; empty lines can precede a header
	isEmpty   bool // whether the current line is empty so far
	lines     int  // number of lines so far
	inPreface int  // number of bytes that match http2Preface; -1 if the connection is not HTTP/2
}

// begin starts the next header.
func (h *headerLimit) begin() {
	if !h.isHTTP2.Load() {
		h.isOver, h.hasText, h.isEmpty, h.lines = false, false, false, 0
	}
}

// end ends the header when net/http has read it. The header can have been received together with the previous request;
// then its lines are not counted.
func (h *headerLimit) end() {
	if !h.isHTTP2.Load() {
		h.isOver = true
	}
}

// count counts the header lines in received bytes. It returns false if the header has too many lines.
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
