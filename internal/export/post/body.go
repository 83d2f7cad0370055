package post

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// body is a request body. It records whether the destination can have received the whole request.
type body struct {
	bytes     bytes.Reader
	state     atomic.Int32 // unread, beingRead or withdrawn
	requested atomic.Bool  // the destination requested the body
	read      atomic.Bool  // net/http has read all of the body
	conn      atomic.Pointer[watchedConn]
}

// The states of a body.
const (
	unread int32 = iota
	beingRead
	withdrawn // must not be read any more
)

// errWithdrawn is returned to net/http if it reads a body that was withdrawn.
var errWithdrawn = errors.New("the body was withdrawn")

// trace returns a context for the request with this body. With it, net/http reports the connection,
// and that the destination has requested the body.
func (b *body) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:        func(info httptrace.GotConnInfo) { b.conn.Store(watchedConnOf(info.Conn)) },
		Got100Continue: func() { b.requested.Store(true) },
	})
}

// withdraw prevents the body from being sent. It reports false if net/http has begun to read it.
func (b *body) withdraw() bool { return b.state.CompareAndSwap(unread, withdrawn) }

// hasConnection reports whether the request got a connection.
func (b *body) hasConnection() bool { return b.conn.Load() != nil }

// sentCompletely reports whether the kernel has accepted every byte of the request.
func (b *body) sentCompletely() bool {
	c := b.conn.Load()
	return c != nil && b.read.Load() && !c.failed.Load()
}

// Read implements io.Reader. It fails if the body was withdrawn.
func (b *body) Read(p []byte) (int, error) {
	b.state.CompareAndSwap(unread, beingRead) // fails after the first read, and after withdraw
	if b.state.Load() == withdrawn {
		return 0, errWithdrawn
	}
	n, err := b.bytes.Read(p)
	if b.bytes.Len() == 0 {
		b.read.Store(true)
	}
	return n, err
}

// Close implements io.ReadCloser.
func (b *body) Close() error { return nil }

// watchedConn is a connection that records whether a write failed.
type watchedConn struct {
	net.Conn
	failed atomic.Bool
}

func (c *watchedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// watchedConnOf returns the watchedConn inside a connection, which TLS can wrap. It panics if the
// connection contains no watchedConn, because then body could not determine whether the request has arrived.
func watchedConnOf(c net.Conn) *watchedConn {
	for {
		switch wrapper := c.(type) {
		case *watchedConn:
			return wrapper
		case interface{ NetConn() net.Conn }:
			c = wrapper.NetConn()
		default:
			panic("BUG: a request has a connection that is not watched")
		}
	}
}
