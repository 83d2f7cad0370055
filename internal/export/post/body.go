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
		GotConn: func(info httptrace.GotConnInfo) {
			c := watchedConnOf(info.Conn)
			c.body.Store(b)
			b.conn.Store(c)
		},
		Got100Continue: func() { b.requested.Store(true) },
	})
}

// withdraw prevents the body from being sent. It reports false if net/http has begun to read it.
func (b *body) withdraw() bool { return b.state.CompareAndSwap(unread, withdrawn) }

// hasConnection reports whether the request got a connection.
func (b *body) hasConnection() bool { return b.conn.Load() != nil }

// sentCompletely reports whether the kernel can have accepted every byte of the request. If it returns false, the
// destination certainly lacks the end of the body. It returns true as well for a failure between two TLS records or
// HTTP/2 frames with the end of a body: such a body is not retried, so that it is never counted twice.
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

// watchedConn is the connection of one request. It records whether a write failed that can contain a part of the
// request. A write after the last one that can is of no importance: over TLS, closing a connection that the destination
// has reset fails to write the alert close_notify, and HTTP/2 writes control frames at any time.
type watchedConn struct {
	net.Conn
	body   atomic.Pointer[body]
	sent   atomic.Bool // a write succeeded that began after the last byte of the body was read
	failed atomic.Bool // a write failed before sent was true
}

func (c *watchedConn) Write(p []byte) (int, error) {
	b := c.body.Load()
	isRead := b != nil && b.read.Load()
	n, err := c.Conn.Write(p)
	switch {
	case err == nil && isRead:
		c.sent.Store(true)
	case err != nil && !c.sent.Load():
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
