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

// Conn is an accepted connection with what the kernel knows about its peer.
type Conn struct {
	net.Conn
	Container string // "" if unknown

	// BodyBytes is the memory for bodies in use by the peer's process, or by this connection if the
	// process is unknown.
	BodyBytes *atomic.Int64

	pid          int32 // 0 if unknown
	limiter      *Limiter
	writeTimeout time.Duration // 0: that of http.Server
	limitsLines  bool
	header       headerLimit

	// The limiter's lock guards these.
	hasSpoken bool      // it has sent a request
	isBusy    bool      // a request is in flight
	since     time.Time // when it became busy or idle, or was accepted
	isClosed  bool
	isDone    bool // net/http is finished with it, or has given it to a handler
}

// Who returns attributes for the log that name the peer.
func (c *Conn) Who() []any {
	if c.pid != 0 {
		return []any{"pid", c.pid, "container", c.Container}
	}
	return []any{"from", c.RemoteAddr().String()}
}

// identify asks the kernel for the peer of a Unix socket. It reports whether the peer may connect.
func (c *Conn) identify(allow []uint32) bool {
	unix, ok := c.Conn.(*net.UnixConn)
	if !ok {
		return true
	}
	peer, err := socket.PeerOf(unix)
	c.pid, c.Container = peer.PID, peer.Container
	return len(allow) == 0 || err == nil && slices.Contains(allow, peer.UID)
}

// Read reads from the sender. It fails if a request header has too many lines.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.limitsLines && !c.header.count(p[:n]) {
		return 0, errManyLines
	}
	return n, err //nolint:wrapcheck // net/http asks what it is
}

// Write writes to the sender, which must read it within the write timeout. There may be any time
// between two writes, so a response may stream for long.
func (c *Conn) Write(p []byte) (int, error) {
	if c.writeTimeout > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(c.writeTimeout)) // the write fails if this does
	}
	return c.Conn.Write(p) //nolint:wrapcheck // net/http's own
}

// CloseWrite ends sending. net/http calls it before it closes a connection with unread input, so that
// the sender reads its response and not a reset.
func (c *Conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite() //nolint:wrapcheck // nobody reads it
	}
	return nil
}

// Close closes the connection, for http.Server. While the server drains, a connection with a request in
// flight stays open until the request has ended, and ConnState closes it then: http.Server.Shutdown
// closes each connection that it has seen idle, although a request may have begun since.
func (c *Conn) Close() error {
	if !c.limiter.remove(c) {
		return nil
	}
	return c.Conn.Close() //nolint:wrapcheck // nobody reads it
}

// Abort closes the connection though a request is in flight.
func (c *Conn) Abort() { c.Conn.Close() }

// IsClosed reports whether the connection was closed before its request began to be served. Such a
// request must not be counted: its sender gets no response and retries, maybe at the next daemon.
func (c *Conn) IsClosed() bool {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	return c.isClosed
}

// ConnState follows a connection from request to request, for http.Server.
func ConnState(followed net.Conn, state http.ConnState) {
	if encrypted, ok := followed.(*tls.Conn); ok {
		followed = encrypted.NetConn()
	}
	c, ok := followed.(*Conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.header.end()
		c.limiter.setBusy(c)
	case http.StateIdle:
		c.header.begin()
		c.limiter.setIdle(c)
	case http.StateHijacked: // its handler closes it
		c.limiter.setDone(c)
	case http.StateClosed:
		c.limiter.setDone(c)
		c.Close()
	}
}

// connKey is the key of the connection in the context of its requests.
type connKey struct{}

// ConnContext is for http.Server.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// Of returns the connection of a request, nil if it has none of ours.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
