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
	isHTTP1 bool // whether the connection did not begin with http2Preface
	// isHTTP2 disables the limit. It is atomic because net/http calls reset and complete for HTTP/2 connections while
	// another goroutine calls count.
	isHTTP2      atomic.Bool
	prefaceBytes int  // number of received bytes of http2Preface
	isComplete   bool // whether the whole header was received
	hasText      bool // whether a line with text was received; empty lines can precede a header
	isLineEmpty  bool // whether the current line has no text so far
	lines        int  // number of lines so far
}

// reset prepares for the next header of the connection.
func (h *headerLimit) reset() {
	if !h.isHTTP2.Load() {
		h.isComplete = false
		h.hasText = false
		h.isLineEmpty = false
		h.lines = 0
	}
}

// complete ends the header when net/http has read it. The header can have been received together with the previous
// request; then its lines are not counted.
func (h *headerLimit) complete() {
	if !h.isHTTP2.Load() {
		h.isComplete = true
	}
}

// count counts the lines of an HTTP/1 header in the bytes that were received last. It returns false when the header has
// more than MaxHeaderLines lines. The header ends with the first empty line after a line with text; count counts nothing
// after that.
func (h *headerLimit) count(received []byte) bool {
	h.detectHTTP2(received)
	if h.isHTTP2.Load() || h.isComplete {
		return true
	}
	for _, c := range received {
		switch c {
		case '\r': // belongs to the line end
		case '\n':
			isHeaderEnd := h.isLineEmpty && h.hasText
			if isHeaderEnd {
				h.isComplete = true
				return true
			}
			h.isLineEmpty = true // the next line has no text so far
			h.lines++
			if h.lines > MaxHeaderLines {
				return false
			}
		default:
			h.hasText = true
			h.isLineEmpty = false
		}
	}
	return true
}

// detectHTTP2 compares the first bytes of the connection with the HTTP/2 preface, and sets isHTTP1 or isHTTP2. It
// must be called with all received bytes in order, because the preface can arrive in several pieces.
func (h *headerLimit) detectHTTP2(received []byte) {
	isDetected := h.isHTTP1 || h.isHTTP2.Load()
	if isDetected {
		return
	}
	for _, c := range received {
		if c != http2Preface[h.prefaceBytes] {
			h.isHTTP1 = true
			return
		}
		h.prefaceBytes++
		if h.prefaceBytes == len(http2Preface) {
			h.isHTTP2.Store(true)
			return
		}
	}
}
