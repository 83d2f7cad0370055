package conns

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter bounds connections in total and per process: a process whose id the kernel knows gets at
// most half of them. At the limit an idle connection is closed for a new one: first those that have
// not sent a request within firstRequestGrace, the oldest first, then the one that has been idle
// longest. If none is idle, the new connection is rejected.
type Limiter struct {
	max      int
	rejected atomic.Uint64

	mu         sync.Mutex
	conns      map[*Conn]struct{}
	isDraining bool
	lastActive time.Time // when a request or a connection last ended
}

// NewLimiter admits at most so many connections at a time.
func NewLimiter(most int) *Limiter { return &Limiter{max: most, conns: map[*Conn]struct{}{}} }

// add admits a connection, and closes an idle one for it if necessary.
func (l *Limiter) add(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sameProcess := func(other *Conn) bool { return c.pid != 0 && other.pid == c.pid }
	own := 0
	c.limiter, c.BodyBytes = l, &atomic.Int64{}
	for other := range l.conns {
		if sameProcess(other) {
			own++
			c.BodyBytes = other.BodyBytes
		}
	}
	if own >= max(1, l.max/2) && !l.evictIdle(sameProcess) {
		return false
	}
	if len(l.conns) >= l.max && !l.evictIdle(func(*Conn) bool { return true }) {
		return false
	}
	c.idleSince = time.Now()
	l.conns[c] = struct{}{}
	return true
}

// evictIdle closes the first idle connection of those that match.
func (l *Limiter) evictIdle(matches func(*Conn) bool) bool {
	var first *Conn
	for c := range l.conns {
		if c.isIdle() && matches(c) && (first == nil || c.evictBefore(first)) {
			first = c
		}
	}
	if first == nil {
		return false
	}
	delete(l.conns, first)
	first.isClosed = true
	first.Conn.Close()
	return true
}

func (c *Conn) evictBefore(other *Conn) bool {
	if c.hasSpoken != other.hasSpoken {
		return other.hasSpoken
	}
	return c.idleSince.Before(other.idleSince)
}

// firstRequestGrace is how long a new connection counts as about to send its first request, which may
// already be in the socket's buffer. Later it is idle: connections that never send a request must not
// keep their slots.
const firstRequestGrace = 250 * time.Millisecond

func (c *Conn) isNew() bool { return !c.hasSpoken && time.Since(c.idleSince) < firstRequestGrace }

func (c *Conn) isIdle() bool { return !c.idleSince.IsZero() && !c.isNew() }

// HasNew reports whether the first request of a new connection may be on its way.
func (l *Limiter) HasNew() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.isNew() {
			return true
		}
	}
	return false
}

// Drain tells the limiter that the server is about to shut down; see Conn.Close.
func (l *Limiter) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isDraining = true
}

// CloseIdle closes idle connections.
func (l *Limiter) CloseIdle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.evictIdle(func(*Conn) bool { return true }) {
	}
}

// CloseAll closes all connections, also those with a request in flight.
func (l *Limiter) CloseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.isClosed = true
		c.Conn.Close()
	}
}

// setBusy notes that a request is in flight. The connection is not closed until it has ended.
func (l *Limiter) setBusy(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.idleSince, c.hasSpoken = time.Time{}, true
}

// setIdle notes that a connection waits for its next request.
func (l *Limiter) setIdle(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markIdle(c)
}

// setDone notes that no more requests follow.
func (l *Limiter) setDone(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.isDone = true
}

// remove makes room for another connection. It reports false if the connection stays open; see
// Conn.Close.
func (l *Limiter) remove(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	isBusy := c.idleSince.IsZero() && !c.isDone
	if isBusy && l.isDraining {
		return false
	}
	if _, isOpen := l.conns[c]; isOpen {
		delete(l.conns, c)
		l.markIdle(c)
	}
	c.isClosed = true
	return true
}

func (l *Limiter) markIdle(c *Conn) {
	c.idleSince = time.Now()
	l.lastActive = c.idleSince
}

// Count returns how many connections are open, and when a request or a connection last ended.
func (l *Limiter) Count() (open int, lastActive time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.lastActive
}

// Rejected returns how many connections were rejected.
func (l *Limiter) Rejected() uint64 { return l.rejected.Load() }

// admit makes a Conn of an accepted connection, or closes it.
func (l *Limiter) admit(accepted net.Conn, of *Listeners) *Conn {
	c := &Conn{Conn: accepted, writeTimeout: of.WriteTimeout}
	switch {
	case !c.identify(of.AllowUIDs):
		accepted.Close()
		return nil
	case !l.add(c):
		l.rejected.Add(1)
		of.Rejected(c.pid)
		reject(accepted)
		return nil
	}
	return c
}
