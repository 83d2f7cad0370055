package conns

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
)

// Conn is an accepted connection. The kernel identifies the peer of a Unix socket.
type Conn struct {
	net.Conn
	Container string // of the peer; "" if unknown

	// BodyBytes is the memory for bodies of the peer's process, or of this connection if the process is
	// unknown.
	BodyBytes *atomic.Int64

	pid          int32 // of the peer; 0 if unknown
	limiter      *Limiter
	writeTimeout time.Duration // 0: http.Server sets it
	limitsLines  bool          // of request headers
	header       headerLimit

	// The limiter's lock guards these.
	hasSentRequest bool
	isBusy         bool      // a request is in flight
	since          time.Time // when it became busy or idle, or was accepted
	isClosed       bool
	isDone         bool // no request follows
}

// LogAttributes returns log attributes that identify the peer.
func (c *Conn) LogAttributes() []any {
	if c.pid != 0 {
		return []any{"pid", c.pid, "container", c.Container}
	}
	return []any{"from", c.RemoteAddr().String()}
}

// identify asks the kernel for the peer of a Unix socket. It reports whether the peer may connect.
func (c *Conn) identify(allowUIDs []uint32) bool {
	unix, isUnix := c.Conn.(*net.UnixConn)
	if !isUnix {
		return true
	}
	peer, err := socket.PeerOf(unix)
	c.pid, c.Container = peer.PID, peer.Container
	isListed := err == nil && slices.Contains(allowUIDs, peer.UID)
	return len(allowUIDs) == 0 || isListed
}

// Read reads from the sender. It fails if a request header has too many lines.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.limitsLines && !c.header.count(p[:n]) {
		return 0, errManyLines
	}
	return n, err //nolint:wrapcheck // net/http asks what it is
}

// Write writes to the sender, which must read the data within the write timeout. The timeout is for one write,
// because a streamed response may take any time.
func (c *Conn) Write(p []byte) (int, error) {
	if c.writeTimeout > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(c.writeTimeout)) // the write fails if this does
	}
	return c.Conn.Write(p) //nolint:wrapcheck // net/http's own
}

// CloseWrite closes the writing side. net/http calls it before it closes a connection with unread input, so
// that the sender reads the response before a reset.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // net/http ignores it
	}
	return nil
}

// Close closes the connection, for http.Server. While the server drains, a connection with a request in
// flight stays open until the request has ended, and ConnState closes it then: http.Server.Shutdown
// closes each connection that it has seen idle, although a request may have begun since.
func (c *Conn) Close() error {
	if !c.limiter.release(c) {
		return nil
	}
	return c.Conn.Close() //nolint:wrapcheck // net/http ignores it
}

// Abort closes the connection even while the server drains, for the handler of its request.
func (c *Conn) Abort() { c.Conn.Close() }

// IsClosed reports whether the connection was closed, for instance for a new one. A request that net/http
// has read from it must not be counted: its sender gets no response and retries, maybe at the next daemon.
func (c *Conn) IsClosed() bool {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	return c.isClosed
}

// ConnState is the http.Server.ConnState of a server whose listeners are limited. It tells the limiter which
// connections are busy.
func ConnState(conn net.Conn, state http.ConnState) {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	c, isLimited := conn.(*Conn)
	if !isLimited {
		return
	}
	switch state {
	case http.StateActive:
		c.header.end()
		c.limiter.setBusy(c)
	case http.StateIdle:
		c.header.begin()
		c.limiter.setIdle(c)
	case http.StateHijacked: // the handler closes it
		c.limiter.setDone(c)
	case http.StateClosed:
		c.limiter.setDone(c)
		c.Close()
	}
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

// ConnContext is an http.Server.ConnContext, for FromContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// FromContext returns the connection of a request, nil if its listener is not limited.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
