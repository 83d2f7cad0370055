package apm

import (
	"context"
	"io"
	"net"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// listener accepts connections of users that may connect, as far as the limiter admits
// them.
type listener struct {
	net.Listener
	server *Server
}

// Accept returns the next connection that is admitted.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if isStopped(err) {
			return nil, net.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		c := l.server.newConn(accepted)
		switch {
		case !c.identify(l.server.config.AllowUIDs):
			accepted.Close()
		case !c.limiter.add(c):
			c.limiter.rejected.Add(1)
			reject(accepted)
		default:
			return c, nil
		}
	}
}

// identify asks the kernel for the peer of a Unix socket, and reports whether it may
// connect.
func (c *conn) identify(allow []uint32) bool {
	unix, ok := c.Conn.(*net.UnixConn)
	if !ok {
		return true
	}
	peer, err := socket.PeerOf(unix)
	c.pid, c.container = peer.PID, peer.Container
	return len(allow) == 0 || err == nil && slices.Contains(allow, peer.UID)
}

// reject answers 503 before a request came. The answer fits into any socket's buffer, so
// that writing it does not block.
func reject(accepted net.Conn) {
	_ = accepted.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(accepted, "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	accepted.Close()
}

// connKey is where the context of a connection's requests holds the connection.
type connKey struct{}

// connContext is for http.Server.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf returns the connection of a request, nil where a test made it without one.
func connOf(ctx context.Context) *conn {
	c, _ := ctx.Value(connKey{}).(*conn)
	return c
}
