package conns

import (
	"sync"
	"sync/atomic"
	"time"
)

// Limiter bounds connections, in total and per process: a process whose id the kernel tells
// gets at most half of them. At the limit one gives way to the newcomer: of those that have never said
// anything the oldest, then the one that has been idle longest, but none that has just said something.
// If none may be closed the newcomer is rejected.
//
// mu guards the connections and their idle times. It is taken when a connection opens,
// closes, and goes from one request to the next.
type Limiter struct {
	max      int
	rejected atomic.Uint64

	mu         sync.Mutex
	conns      map[*Conn]struct{}
	lastActive time.Time // when anybody was last heard
}

// NewLimiter admits so many connections at a time.
func NewLimiter(most int) *Limiter { return &Limiter{max: most, conns: map[*Conn]struct{}{}} }

// add admits a connection, in the place of an idle one if need be.
func (l *Limiter) add(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sameProcess := func(other *Conn) bool { return c.pid != 0 && other.pid == c.pid }
	own := 0
	c.HasOfBodies = &atomic.Int64{}
	for other := range l.conns {
		if sameProcess(other) {
			own++
			c.HasOfBodies = other.HasOfBodies
		}
	}
	if own >= max(1, l.max/2) && !l.closeIdle(sameProcess) {
		return false
	}
	if len(l.conns) >= l.max && !l.closeIdle(func(*Conn) bool { return true }) {
		return false
	}
	c.idleSince = time.Now()
	l.conns[c] = struct{}{}
	return true
}

// closeIdle closes the connection that has to give way first, of those that match.
func (l *Limiter) closeIdle(matches func(*Conn) bool) bool {
	var first *Conn
	for c := range l.conns {
		if !c.idleSince.IsZero() && matches(c) && c.givesWayBefore(first) && !c.HasUnread() {
			first = c
		}
	}
	if first == nil {
		return false
	}
	delete(l.conns, first)
	first.isOver = true
	first.Conn.Close()
	return true
}

func (c *Conn) givesWayBefore(other *Conn) bool {
	switch {
	case other == nil:
		return true
	case c.hasSpoken != other.hasSpoken:
		return other.hasSpoken
	}
	return c.idleSince.Before(other.idleSince)
}

// newcomer is for how long a connection that has said nothing yet may be about to.
const newcomer = time.Second

// WakeIdles has the goroutines of connections that wait for a next request look whether they should, of
// those that match. A newcomer may be about to send its first, so it is left to its own time for that.
func (l *Limiter) WakeIdles(matches func(*Conn) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		isWaiting := !c.idleSince.IsZero() && (c.hasSpoken || time.Since(c.idleSince) > newcomer)
		if isWaiting && matches(c) {
			c.Wake()
		}
	}
}

// CloseIdles closes the connections that are idle, of those that match.
func (l *Limiter) CloseIdles(matches func(*Conn) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.closeIdle(matches) {
	}
}

// CloseAll cuts off whatever request is left.
func (l *Limiter) CloseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.isOver = true
		c.Conn.Close()
	}
}

// SetBusy notes that a request of a connection is under way. While one is, the connection
// does not give way.
func (l *Limiter) SetBusy(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.idleSince, c.hasSpoken = time.Time{}, true
}

// IsOver says whether a connection was closed by us when it was last made busy. What it had
// read by then must not be counted: its sender waits for an answer, hears none, and sends it
// again, maybe to the next daemon. A sender that has left by itself may wait for nothing.
func (l *Limiter) IsOver(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.isOver
}

// SetIdle notes that a connection waits for its next request.
func (l *Limiter) SetIdle(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markIdle(c)
}

// Remove makes room for another connection. It may be called repeatedly.
func (l *Limiter) Remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if c.idleSince.IsZero() {
		l.markIdle(c)
	}
}

func (l *Limiter) markIdle(c *Conn) {
	c.idleSince = time.Now()
	l.lastActive = c.idleSince
}

// CountOf is how many connections are open, of those that match.
func (l *Limiter) CountOf(matches func(*Conn) bool) (open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if matches(c) {
			open++
		}
	}
	return open
}

// Count is how many connections are open, and when anybody was last heard.
func (l *Limiter) Count() (open int, lastActive time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.lastActive
}

// Rejected is how many found no room.
func (l *Limiter) Rejected() uint64 { return l.rejected.Load() }
