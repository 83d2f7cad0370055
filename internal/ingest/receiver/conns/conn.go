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
	Container string // container id of the peer; "" if unknown

	// BodyBytes is the memory for bodies of the peer's process, or of this connection if the process is
	// unknown.
	BodyBytes *atomic.Int64

	pid               int32 // process id of the peer; 0 if unknown
	limiter           *Limiter
	writeTimeout      time.Duration // timeout of one write; 0 if http.Server sets it
	limitsHeaderLines bool          // whether Read limits the number of lines of a request header
	header            headerLimit
	isHTTP2           atomic.Bool
	// isResponseBuffered reports whether the end of the last response may still be in net/http's buffer, not written to
	// the connection. It is set for HTTP/2 connections only.
	isResponseBuffered atomic.Bool

	// The limiter's lock guards the fields below.
	hasSentRequest bool
	isBusy         bool      // whether a request is in flight
	stateStart     time.Time // time when the connection became busy or idle, or was accepted
	isClosed       bool
	hasFinished    bool // whether the last request of the connection has ended
}

// LogAttributes returns log attributes that identify the peer.
func (c *Conn) LogAttributes() []any {
	if c.pid != 0 {
		return []any{"pid", c.pid, "container", c.Container}
	}
	return []any{"from", c.RemoteAddr().String()}
}

// identifyPeer sets c.pid and c.Container to the process and the container of the peer of a Unix socket. isAllowed
// is false if allowUIDs is not empty and does not contain the user of the peer. A TCP peer is always allowed.
func (c *Conn) identifyPeer(allowUIDs []uint32) (isAllowed bool) {
	unixConn, isUnix := c.Conn.(*net.UnixConn)
	if !isUnix {
		return true
	}
	peer, err := socket.PeerOf(unixConn)
	isUserKnown := err == nil
	if isUserKnown {
		c.pid = peer.PID
		c.Container = peer.Container
	}
	if len(allowUIDs) == 0 {
		return true
	}
	return isUserKnown && slices.Contains(allowUIDs, peer.UID)
}

// Read reads from the sender. It returns an error if the header of a request has more than MaxHeaderLines lines.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.limitsHeaderLines {
		isAllowed := c.header.count(p[:n])
		if !isAllowed {
			return 0, errManyLines
		}
	}
	return n, err //nolint:wrapcheck // net/http checks its type
}

// Write writes to the sender, which must read the data within the write timeout. The timeout applies to one write, not to
// the whole response, because a streamed response can take any time.
func (c *Conn) Write(p []byte) (int, error) {
	if c.writeTimeout > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(c.writeTimeout)) // if it fails, so does the write
	}
	n, err := c.Conn.Write(p)
	c.isResponseBuffered.Store(false) // p is all that net/http has buffered; after an error, it does not write p again
	return n, err                     //nolint:wrapcheck // net/http's own
}

// SetHTTP2 records that the requests of the connection use HTTP/2. The limiter then does not close the connection until
// the end of a response is written, although net/http reports it as idle earlier.
func (c *Conn) SetHTTP2() { c.isHTTP2.Store(true) }

// CloseWrite closes the writing side. net/http calls it before it closes a connection with unread input, so
// that the sender reads the response before a reset.
func (c *Conn) CloseWrite() error {
	if halfCloser, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return halfCloser.CloseWrite() //nolint:wrapcheck // net/http ignores it
	}
	return nil
}

// Close closes the connection. http.Server calls it. While the server drains, a connection with a request in flight stays
// open until ConnState closes it at the end of the request. Otherwise http.Server.Shutdown, which closes all connections
// that it considers idle, could close one on which a request has just arrived.
func (c *Conn) Close() error {
	if !c.limiter.release(c) {
		return nil
	}
	return c.Conn.Close() //nolint:wrapcheck // net/http ignores it
}

// Abort closes the connection even while the server drains. Handlers call it.
func (c *Conn) Abort() { c.Conn.Close() }

// IsClosed reports whether the connection was closed, for instance because it was evicted. A request from a closed
// connection must not be counted: the sender gets no response, so it sends the request again.
func (c *Conn) IsClosed() bool {
	c.limiter.mu.Lock()
	defer c.limiter.mu.Unlock()
	return c.isClosed
}

// ConnState is the http.Server.ConnState hook for servers that accept from Listeners. It passes the new state of a
// connection to the Limiter, which evicts idle connections, and to c.header, which counts the lines of each request
// header. It ignores connections without a limiter.
func ConnState(conn net.Conn, state http.ConnState) {
	if tlsConn, isTLS := conn.(*tls.Conn); isTLS {
		conn = tlsConn.NetConn()
	}
	c, isLimited := conn.(*Conn)
	if !isLimited {
		return
	}
	switch state {
	case http.StateActive:
		c.header.complete()
		c.limiter.setBusy(c)
	case http.StateIdle:
		c.header.reset()
		if c.isHTTP2.Load() {
			c.isResponseBuffered.Store(true) // net/http reports StateIdle before it writes the end of an HTTP/2 response
		}
		c.limiter.setIdle(c)
	case http.StateHijacked: // the handler closes the connection
		c.limiter.setDone(c)
	case http.StateClosed:
		c.limiter.setDone(c)
		c.Close()
	}
}

// connKey is the key of a connection in the context of its requests.
type connKey struct{}

// ConnContext is the http.Server.ConnContext hook that makes FromContext work.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// FromContext returns the connection of a request, or nil if the listener is not limited.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
