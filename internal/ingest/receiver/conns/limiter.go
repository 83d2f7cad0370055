package conns

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter bounds connections in total and per process: a process whose id the kernel knows gets at
// most half of them. At the limit a connection that waits for a request is closed for a new one. If
// no connection waits, the new one is rejected, unless NeverRejects.
type Limiter struct {
	// NeverRejects makes the limiter evict a new or a busy connection rather than reject one. Set it
	// before the first connection.
	NeverRejects bool

	max               int
	rejected, evicted atomic.Uint64

	mu         sync.Mutex
	conns      map[*Conn]struct{}
	isDraining bool
	lastActive time.Time // when a request or a connection last ended
}

// activity is the state of a connection. Connections are evicted in the order of their activities, and
// within one the connection that has been in it longest.
type activity uint8

const (
	activitySilent activity = iota // no request for longer than firstRequestGrace
	activityIdle                   // between two requests
	activityNew                    // about to send its first request, which may be in the socket's buffer
	activityBusy                   // a request is served
)

// firstRequestGrace is how long a connection counts as new. It is short, because connections that never
// send a request must not keep their slots.
const firstRequestGrace = 250 * time.Millisecond

// activity returns the activity of a connection. The limiter's lock must be held.
func (c *Conn) activity() activity {
	switch {
	case c.isBusy:
		return activityBusy
	case c.hasSentRequest:
		return activityIdle
	case time.Since(c.since) < firstRequestGrace:
		return activityNew
	}
	return activitySilent
}

// NewLimiter admits at most so many connections at a time.
func NewLimiter(most int) *Limiter { return &Limiter{max: most, conns: map[*Conn]struct{}{}} }

// add admits a connection, and evicts another one for it if necessary.
func (l *Limiter) add(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	sameProcess := func(other *Conn) bool { return c.pid != 0 && other.pid == c.pid }
	ofProcess, maxOfProcess := 0, max(1, l.max/2)
	c.limiter, c.BodyBytes = l, &atomic.Int64{}
	for other := range l.conns {
		if sameProcess(other) {
			ofProcess++
			c.BodyBytes = other.BodyBytes
		}
	}
	if ofProcess >= maxOfProcess && !l.makeRoom(sameProcess) {
		return false
	}
	if len(l.conns) >= l.max && !l.makeRoom(isAny) {
		return false
	}
	c.since = time.Now()
	l.conns[c] = struct{}{}
	return true
}

func isAny(*Conn) bool { return true }

// makeRoom evicts one of the matching connections for a new one, and reports whether there was one.
func (l *Limiter) makeRoom(matches func(*Conn) bool) bool {
	last := activityIdle
	if l.NeverRejects {
		last = activityBusy
	}
	if !l.evict(last, matches) {
		return false
	}
	l.evicted.Add(1)
	return true
}

// evict closes one of the matching connections whose activity is not after last, and reports whether there
// was one.
func (l *Limiter) evict(last activity, matches func(*Conn) bool) bool {
	var first *Conn
	for c := range l.conns {
		isCandidate := c.activity() <= last && matches(c)
		if isCandidate && (first == nil || c.evictBefore(first)) {
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

// evictBefore reports whether a connection is evicted before another one.
func (c *Conn) evictBefore(other *Conn) bool {
	if mine, others := c.activity(), other.activity(); mine != others {
		return mine < others
	}
	return c.since.Before(other.since)
}

// drainGrace is how long a stopping server waits for the first request of a connection. It is longer than
// firstRequestGrace, because no other connection needs the slot, and the processors may be busy.
const drainGrace = time.Second

// AwaitsFirst reports whether a stopping server must wait for the first request of a connection.
func (l *Limiter) AwaitsFirst() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if !c.hasSentRequest && time.Since(c.since) < drainGrace {
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
	for l.evict(activityIdle, isAny) {
	}
}

// CloseAll closes all connections, including busy ones.
func (l *Limiter) CloseAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.isClosed = true
		c.Conn.Close()
	}
}

// setBusy marks a connection as busy.
func (l *Limiter) setBusy(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.isBusy, c.hasSentRequest, c.since = true, true, time.Now()
}

// setIdle marks a connection as waiting for its next request.
func (l *Limiter) setIdle(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markIdle(c)
}

// setDone marks a connection whose last request has ended.
func (l *Limiter) setDone(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.isDone = true
}

// release frees the slot of a connection that is about to be closed. It reports false if the connection must
// stay open; see Conn.Close.
func (l *Limiter) release(c *Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isDraining && c.isBusy && !c.isDone {
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
	c.isBusy, c.since = false, time.Now()
	l.lastActive = c.since
}

// Count returns how many connections are open, and when a request or a connection last ended.
func (l *Limiter) Count() (open int, lastActive time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.lastActive
}

// Rejected returns how many connections were rejected.
func (l *Limiter) Rejected() uint64 { return l.rejected.Load() }

// Evicted returns how many connections were closed for new ones.
func (l *Limiter) Evicted() uint64 { return l.evicted.Load() }

// admit returns a Conn for an accepted connection, or closes the connection and returns nil.
func (l *Limiter) admit(accepted net.Conn, of *Listeners) *Conn {
	c := &Conn{Conn: accepted, writeTimeout: of.WriteTimeout, limitsLines: of.LimitsLines}
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
