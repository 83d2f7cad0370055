package apm

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// crowd is all tracers' connections, which it keeps to a number: each costs memory, and
// one process must not keep the others out. Of a process that the kernel shows us there
// are half of them at most. When there is no room, the one that has waited longest
// between two requests gives its own to the newcomer: its tracer connects again when it
// has something to say. Only where all are in the midst of a request is the newest
// refused.
//
// mu guards what is inside; it is taken a few times a request.
type crowd struct {
	most    int
	allow   []uint32
	refused atomic.Uint64

	mu     sync.Mutex
	inside map[*guest]struct{}
	last   time.Time // when a tracer last had something to say
}

// guest is one connection.
type guest struct {
	net.Conn
	crowd     *crowd
	uid       uint32
	pid       int32 // 0 where the kernel does not show it
	container string
	header    headerLines // of the goroutine that reads
	idle      time.Time   // since when it is between two requests, zero otherwise
}

// entrance is a listener whose connections are guests.
type entrance struct {
	net.Listener
	crowd *crowd
}

// Accept returns the next connection of one who may come in.
func (e *entrance) Accept() (net.Conn, error) {
	for {
		conn, err := e.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g := &guest{Conn: conn, crowd: e.crowd}
		switch err := g.identify(); {
		case err != nil:
			conn.Close()
		case !e.crowd.enter(g):
			e.crowd.refused.Add(1)
			sayFull(conn)
		default:
			return g, nil
		}
	}
}

// errNotAllowed says that a user is none of --allow-uid.
var errNotAllowed = errors.New("identify tracer: its user may not connect")

// identify asks the kernel whose the connection is, which it can tell of a socket's.
func (g *guest) identify() error {
	conn, ok := g.Conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	allow := g.crowd.allow
	peer, err := socket.PeerOf(conn)
	g.uid, g.pid, g.container = peer.UID, peer.PID, peer.Container
	if err != nil && len(allow) == 0 {
		return nil // who it is does not matter
	}
	if err == nil && len(allow) > 0 && !slices.Contains(allow, g.uid) {
		return errNotAllowed
	}
	return err
}

// sayFull answers before anything was asked: a tracer logs it, and tries again later.
// It fits into any socket's buffer, so it waits for nobody.
func sayFull(conn net.Conn) {
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	conn.Close()
}

// enter lets a guest in, in the place of an idle one if need be.
func (c *crowd) enter(g *guest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	kin := func(other *guest) bool { return g.pid != 0 && other.pid == g.pid }
	var own int
	for other := range c.inside {
		if kin(other) {
			own++
		}
	}
	anybody := func(*guest) bool { return true }
	switch {
	case own >= max(1, c.most/2) && !c.dismiss(kin), len(c.inside) >= c.most && !c.dismiss(anybody):
		return false
	}
	c.inside[g] = struct{}{}
	return true
}

// dismiss closes the longest idle of some guests, if one is.
func (c *crowd) dismiss(of func(*guest) bool) bool {
	var longest *guest
	for g := range c.inside {
		if !g.idle.IsZero() && of(g) && (longest == nil || g.idle.Before(longest.idle)) {
			longest = g
		}
	}
	if longest == nil {
		return false
	}
	delete(c.inside, longest)
	longest.Conn.Close()
	return true
}

// changed follows a connection from request to request.
func (c *crowd) changed(conn net.Conn, state http.ConnState) {
	g, ok := conn.(*guest)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateIdle:
		g.header.reset()
		g.idle = time.Now()
		c.last = g.idle
	case http.StateActive:
		g.idle = time.Time{}
	}
}

// Close makes room, however often it is called.
func (g *guest) Close() error {
	c := g.crowd
	c.mu.Lock()
	delete(c.inside, g)
	if g.idle.IsZero() {
		g.idle = time.Now()
		c.last = g.idle
	}
	c.mu.Unlock()
	return g.Conn.Close()
}

// count is how many are inside, and when one of them last had something to say.
func (c *crowd) count() (inside int, last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.inside), c.last
}
