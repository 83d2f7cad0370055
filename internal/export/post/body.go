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

// trace returns a context for the request with this body. When net/http sends the request, the context
// causes it to record the connection in b, and whether the destination has requested the body.
func (b *body) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			c := unwrapConn(info.Conn)
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

// mayHaveArrived reports whether the destination may have received the whole request. If it returns
// false, the destination certainly lacks the end of the body, so the request can be retried.
func (b *body) mayHaveArrived() bool {
	c := b.conn.Load()
	return c != nil && b.read.Load() && !c.failed.Load()
}

// Read implements io.Reader. It fails if the body was withdrawn. After the first call, the body cannot
// be withdrawn any more.
func (b *body) Read(p []byte) (int, error) {
	b.state.CompareAndSwap(unread, beingRead)
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

// watchedConn is the connection of one request. It records whether a write failed that may have
// contained a part of the request. Later writes do not matter: closing a TLS connection that the
// destination has reset fails to write the alert close_notify, and HTTP/2 writes control frames at any
// time. A failure between two TLS records or HTTP/2 frames with the end of a body can go unnoticed.
// Then the request counts as sent and is not retried, so that it is never counted twice.
type watchedConn struct {
	net.Conn
	body   atomic.Pointer[body]
	sent   atomic.Bool // a write succeeded that began after the last byte of the body was read
	failed atomic.Bool // a write failed before sent was true
}

// Write implements net.Conn. It records whether the end of the request was written, or a write failed
// before that.
func (c *watchedConn) Write(p []byte) (int, error) {
	b := c.body.Load()
	isBodyRead := b != nil && b.read.Load() // before the write: then p follows the last byte read, or contains it
	n, err := c.Conn.Write(p)
	if err == nil {
		if isBodyRead {
			c.sent.Store(true)
		}
	} else if !c.sent.Load() {
		c.failed.Store(true)
	}
	return n, err
}

// unwrapConn returns the watchedConn that c is or wraps. A TLS connection wraps one, for example. It
// panics if there is none, because each connection of a Poster is dialed as a watchedConn.
func unwrapConn(c net.Conn) *watchedConn {
	for {
		switch conn := c.(type) {
		case *watchedConn:
			return conn
		case interface{ NetConn() net.Conn }:
			c = conn.NetConn()
		default:
			panic("BUG: a request has a connection that is not watched")
		}
	}
}
