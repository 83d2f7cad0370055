package apm

import (
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connLimiter bounds tracers' connections, in total and per process: a process whose id
// the kernel tells gets at most half of them. At the limit the connection that has been
// idle longest is closed for the newcomer; if none is idle the newcomer is rejected.
//
// mu guards the connections and their idle times. It is taken when a connection opens,
// closes, and goes from one request to the next.
type connLimiter struct {
	max      int
	rejected atomic.Uint64

	mu         sync.Mutex
	conns      map[*conn]struct{}
	lastActive time.Time // when a tracer was last heard
}

// conn is a tracer's connection, limited in number and in the lines of its headers.
type conn struct {
	net.Conn
	limiter   *connLimiter
	pid       int32 // 0 where the kernel does not tell
	container string
	header    headerLimit // the goroutine that reads uses it
	idleSince time.Time   // zero while a request is under way
	receipt   receipt
}

// add admits a connection, in the place of an idle one if need be.
func (l *connLimiter) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sameProcess := func(other *conn) bool { return c.pid != 0 && other.pid == c.pid }
	own := 0
	for other := range l.conns {
		if sameProcess(other) {
			own++
		}
	}
	if own >= max(1, l.max/2) && !l.closeIdle(sameProcess) {
		return false
	}
	if len(l.conns) >= l.max && !l.closeIdle(func(*conn) bool { return true }) {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

// closeIdle closes the connection that has been idle longest, of those that match.
func (l *connLimiter) closeIdle(matches func(*conn) bool) bool {
	var longest *conn
	for c := range l.conns {
		if !c.idleSince.IsZero() && matches(c) && (longest == nil || c.idleSince.Before(longest.idleSince)) {
			longest = c
		}
	}
	if longest == nil {
		return false
	}
	delete(l.conns, longest)
	longest.Conn.Close()
	return true
}

// connState follows a connection from request to request, for http.Server.
func (l *connLimiter) connState(netConn net.Conn, state http.ConnState) {
	c, ok := netConn.(*conn)
	if !ok {
		return
	}
	if state == http.StateIdle {
		c.receipt.idle()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateIdle:
		c.header.reset()
		l.markIdle(c)
	case http.StateActive:
		c.idleSince = time.Time{}
	}
}

func (l *connLimiter) markIdle(c *conn) {
	c.idleSince = time.Now()
	l.lastActive = c.idleSince
}

// Close closes the connection and makes room for another. It may be called repeatedly.
func (c *conn) Close() error {
	l := c.limiter
	l.mu.Lock()
	delete(l.conns, c)
	if c.idleSince.IsZero() {
		l.markIdle(c)
	}
	l.mu.Unlock()
	c.receipt.closed()
	return c.Conn.Close()
}

// count is how many connections are open, and when a tracer was last heard.
func (l *connLimiter) count() (open int, lastActive time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.lastActive
}

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

// Write writes to the tracer.
func (c *conn) Write(p []byte) (int, error) {
	c.receipt.writing()
	return c.Conn.Write(p)
}

// Read reads from the tracer.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.receipt.failed(err)
	}
	if !c.header.done.Load() && !c.header.count(p[:n]) {
		return 0, errManyLines
	}
	return n, err
}
