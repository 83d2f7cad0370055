package conns

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter limits connections in total and per process: a process with a known id gets at most half of them. At the limit
// an idle connection is evicted for a new one. If no connection is idle, the new one is rejected, unless NeverRejects is
// set.
type Limiter struct {
	// NeverRejects makes the limiter evict a new or a busy connection rather than reject one. Set it
	// before the first connection.
	NeverRejects bool

	max               int
	rejected, evicted atomic.Uint64

	mu         sync.Mutex
	conns      map[*Conn]struct{}
	isDraining bool
	lastActive time.Time // time when a request or a connection last ended
}

// activity is the state of a connection, from the first to the last to be evicted. Among connections in the same state,
// the one that has been in it longest is evicted first.
type activity uint8

const (
	activitySilent activity = iota // without a first request after firstRequestGrace
	activityIdle                   // between two requests
	activityNew                    // without a first request so far; it may be in the socket's buffer
	activityBusy                   // with a request in flight, or a response that is not written completely
)

// firstRequestGrace is the time for which a connection counts as new. It is short, because connections that never
// send a request must not keep their slots.
const firstRequestGrace = 250 * time.Millisecond

// flushTimeout is the time after which the last response of an idle connection counts as written, even if no write has
// followed it.
const flushTimeout = time.Second

// activity returns the state of the connection: busy during a request, or idle after one. A connection that has not
// sent a request is new for firstRequestGrace, and then silent. The caller must hold the lock of the limiter.
func (c *Conn) activity() activity {
	switch {
	case c.isBusy, c.isFlushing():
		return activityBusy
	case c.hasSentRequest:
		return activityIdle
	case time.Since(c.stateStart) < firstRequestGrace:
		return activityNew
	}
	return activitySilent
}

// isFlushing reports whether the end of the last response may not be written yet. If the connection were closed now, the
// sender would send a counted request again. The caller must hold the lock of the limiter.
func (c *Conn) isFlushing() bool {
	return c.isResponseBuffered.Load() && time.Since(c.stateStart) < flushTimeout
}

// NewLimiter returns a Limiter that admits at most maxConns connections at a time.
func NewLimiter(maxConns int) *Limiter { return &Limiter{max: maxConns, conns: map[*Conn]struct{}{}} }

// add adds an accepted connection to l. If the peer's process already has half of the maximum number of connections,
// add first closes one of that process. If there is the maximum number of connections in total, it first closes any
// connection. If evictForNew can't close a connection, add does not add c, and returns false.
func (l *Limiter) add(c *Conn) (isAdded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.limiter = l
	l.shareBodyBytes(c)
	maxPerProcess := max(1, l.max/2)
	hasRoom := true
	switch {
	case l.count(c.isSameProcess) >= maxPerProcess:
		hasRoom = l.evictForNew(c.isSameProcess)
	case len(l.conns) >= l.max:
		hasRoom = l.evictForNew(isAny)
	}
	if !hasRoom {
		return false
	}
	c.stateStart = time.Now()
	l.conns[c] = struct{}{}
	return true
}

// shareBodyBytes sets c.BodyBytes to the counter that all connections of the peer's process share.
func (l *Limiter) shareBodyBytes(c *Conn) {
	for other := range l.conns {
		if c.isSameProcess(other) {
			c.BodyBytes = other.BodyBytes
			return
		}
	}
	c.BodyBytes = &atomic.Int64{} // the first connection of the process
}

// count returns the number of connections for which matches returns true.
func (l *Limiter) count(matches func(*Conn) bool) (conns int) {
	for c := range l.conns {
		if matches(c) {
			conns++
		}
	}
	return conns
}

// isSameProcess reports whether both connections are from the same process. It returns false if that is unknown.
func (c *Conn) isSameProcess(other *Conn) bool { return c.pid != 0 && other.pid == c.pid }

func isAny(*Conn) bool { return true }

// evictForNew closes one of the matching connections to make room for a new one, and counts that. It returns false if
// each of them has a request in flight or may still send its first one. If NeverRejects is set, it closes even those.
func (l *Limiter) evictForNew(matches func(*Conn) bool) bool {
	maxActivity := activityIdle
	if l.NeverRejects {
		maxActivity = activityBusy
	}
	if !l.evict(maxActivity, matches) {
		return false
	}
	l.evicted.Add(1)
	return true
}

// evict closes the least active of the connections for which matches returns true. It returns false if there is
// none, or if all of them are more active than maxActivity. The caller must hold the lock of the limiter.
func (l *Limiter) evict(maxActivity activity, matches func(*Conn) bool) bool {
	var victim *Conn
	for c := range l.conns {
		canEvict := matches(c) && c.activity() <= maxActivity
		if !canEvict {
			continue
		}
		if victim == nil || c.isLessActive(victim) {
			victim = c
		}
	}
	if victim == nil {
		return false
	}
	delete(l.conns, victim)
	victim.isClosed = true
	victim.Conn.Close()
	return true
}

// isLessActive reports whether c must be evicted before other: it has the lower activity, or has had the same activity
// for a longer time.
func (c *Conn) isLessActive(other *Conn) bool {
	if c.activity() != other.activity() {
		return c.activity() < other.activity()
	}
	return c.stateStart.Before(other.stateStart)
}

// drainGrace is the time for which a stopping server waits for the first request of a connection. It is longer than
// firstRequestGrace, because no other connection needs the slot, and the processors may be busy.
const drainGrace = time.Second

// AwaitsFirstRequest reports whether any connection was accepted less than drainGrace ago and has not sent a
// request. A server that shuts down waits until there is no such connection.
func (l *Limiter) AwaitsFirstRequest() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.hasSentRequest {
			continue
		}
		acceptTime := c.stateStart // the state has not changed since
		if time.Since(acceptTime) < drainGrace {
			return true
		}
	}
	return false
}

// Drain marks the server as about to shut down, so that Conn.Close keeps busy connections open.
func (l *Limiter) Drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isDraining = true
}

// CloseIdle closes all idle and silent connections.
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

// setBusy marks a connection as having a request in flight.
func (l *Limiter) setBusy(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.isBusy = true
	c.hasSentRequest = true
	c.stateStart = time.Now()
}

// setIdle marks a connection as waiting for its next request.
func (l *Limiter) setIdle(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.markIdle(c)
}

// setDone marks a connection whose last request has ended, so that Close closes it even while the server drains.
func (l *Limiter) setDone(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.hasFinished = true
}

// release removes c from the limiter before the caller closes c. canClose is false if the caller must not close c,
// because the server is shutting down and a request or a response of c is in flight.
func (l *Limiter) release(c *Conn) (canClose bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	isInFlight := c.activity() == activityBusy && !c.hasFinished // setDone does not reset isBusy
	if l.isDraining && isInFlight {
		return false
	}
	c.isClosed = true
	_, isRegistered := l.conns[c] // an evicted connection is not
	if isRegistered {
		delete(l.conns, c)
		l.markIdle(c) // the end of the connection also ends its request
	}
	return true
}

// markIdle marks a connection as idle from now on. The limiter's lock must be held.
func (l *Limiter) markIdle(c *Conn) {
	c.isBusy = false
	c.stateStart = time.Now()
	l.lastActive = c.stateStart
}

// Count returns the number of open connections, and the time when a request or a connection last ended.
func (l *Limiter) Count() (open int, lastActive time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.lastActive
}

// Rejected returns the number of rejected connections.
func (l *Limiter) Rejected() uint64 { return l.rejected.Load() }

// Evicted returns the number of connections that were closed for new ones.
func (l *Limiter) Evicted() uint64 { return l.evicted.Load() }

// admit adds an accepted connection to the limiter, and returns it as a Conn. If the user of the peer is not
// allowed, or if a limit is reached, it closes the connection and returns nil.
func (l *Limiter) admit(accepted net.Conn, config *Listeners) *Conn {
	c := &Conn{Conn: accepted, writeTimeout: config.WriteTimeout, limitsHeaderLines: config.LimitsHeaderLines}
	isAllowed := c.identifyPeer(config.AllowUIDs)
	if !isAllowed {
		accepted.Close()
		return nil
	}
	isAdded := l.add(c)
	if !isAdded {
		l.rejected.Add(1)
		config.OnReject(c.pid)
		reject(accepted)
		return nil
	}
	return c
}
