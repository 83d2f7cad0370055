package apm

import (
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

// closeIdles closes the connections that are idle.
func (l *connLimiter) closeIdles() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.closeIdle(func(*conn) bool { return true }) {
	}
}

// closeAll cuts off whatever request is left.
func (l *connLimiter) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Conn.Close()
	}
}

// connState follows a connection from request to request, for http.Server.
func (l *connLimiter) connState(netConn net.Conn, state http.ConnState) {
	c, ok := netConn.(*conn)
	if !ok {
		return
	}
	if state == http.StateIdle {
		c.receipt.idle()
		c.isBetween = c.rest == 0
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

// count is how many connections are open, and when a tracer was last heard.
func (l *connLimiter) count() (open int, lastActive time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.lastActive
}
