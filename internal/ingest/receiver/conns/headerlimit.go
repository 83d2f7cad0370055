package conns

import (
	"errors"
	"sync/atomic"
)

// MaxHeaderBytes and MaxHeaderLines bound a request header: several times the header of any tracer or
// SDK, and a small part of what an agent accepts, since each connection may hold one. (net/http accepts
// 4 KiB more.)
const (
	MaxHeaderBytes = 16 << 10
	MaxHeaderLines = 128
)

var errManyLines = errors.New("read header: it has more lines than any tracer sends")

// http2Preface begins a connection of HTTP/2, whose frames have no lines.
const http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// headerLimit bounds the lines of a request header while it is received. net/http bounds only its
// bytes, and keeps a hundred bytes per line of four: a few dozen headers that never end would take
// the memory of all requests.
type headerLimit struct {
	isHTTP2 atomic.Bool // from then on, begin and end run beside count, and all do nothing
	isOver  bool        // the header is received
	hasText bool        // a line with text came; empty lines may precede a header
	isEmpty bool        // the current line so far
	lines   int
	matched int // bytes of the preface; -1 if the connection began otherwise
}

// begin prepares for the next header.
func (h *headerLimit) begin() {
	if !h.isHTTP2.Load() {
		h.isOver, h.hasText, h.isEmpty, h.lines = false, false, false, 0
	}
}

// end notes that net/http has the header, whose lines may have come with the previous request.
func (h *headerLimit) end() {
	if !h.isHTTP2.Load() {
		h.isOver = true
	}
}

// count counts the lines of received bytes. It reports false above the limit.
func (h *headerLimit) count(p []byte) bool {
	for i := 0; i < len(p) && h.matched >= 0 && h.matched < len(http2Preface); i++ {
		if h.matched++; p[i] != http2Preface[h.matched-1] {
			h.matched = -1
		} else if h.matched == len(http2Preface) {
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
