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
	unread      bytes.Reader // the part that net/http has not read yet
	state       atomic.Int32 // waiting, beingRead or withdrawn
	isRequested atomic.Bool  // the destination requested the body
	isFullyRead atomic.Bool  // net/http has read all of the body
	conn        atomic.Pointer[watchedConn]
}

// newBody returns a body with the given content.
func newBody(content []byte) *body {
	b := &body{}
	b.unread.Reset(content)
	return b
}

// The states of a body.
const (
	waiting int32 = iota
	beingRead
	withdrawn // must not be read any more
)

// errWithdrawn is returned to net/http if it reads a body that was withdrawn.
var errWithdrawn = errors.New("the body was withdrawn")

// withTrace returns a copy of ctx for the request with this body. It makes net/http store the connection of the
// request in b.conn. It also makes net/http set b.isRequested when the destination requests the body with
// status 100.
func (b *body) withTrace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			conn := unwrapConn(info.Conn)
			conn.body.Store(b) // so that conn knows when it has written all of the body
			b.conn.Store(conn) // so that the body knows whether a write has failed
		},
		Got100Continue: func() { b.isRequested.Store(true) },
	})
}

// withdraw prevents the body from being sent. It returns false if net/http has begun to read it.
func (b *body) withdraw() bool { return b.state.CompareAndSwap(waiting, withdrawn) }

// hasConnection reports whether the request got a connection.
func (b *body) hasConnection() bool { return b.conn.Load() != nil }

// mayHaveArrived reports whether the destination may have received the whole request. If it returns
// false, the destination certainly lacks the end of the body, so the request can be retried.
func (b *body) mayHaveArrived() bool {
	if !b.hasConnection() || !b.isFullyRead.Load() {
		return false
	}
	return !b.conn.Load().hasFailed.Load()
}

// wasWithdrawn reports whether withdraw has prevented the body from being sent.
func (b *body) wasWithdrawn() bool { return b.state.Load() == withdrawn }

// Read implements io.Reader. It fails if the body was withdrawn. After the first call, the body cannot
// be withdrawn any more.
func (b *body) Read(p []byte) (int, error) {
	b.state.CompareAndSwap(waiting, beingRead)
	if b.wasWithdrawn() {
		return 0, errWithdrawn
	}
	n, err := b.unread.Read(p)
	if b.unread.Len() == 0 {
		b.isFullyRead.Store(true)
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
	body      atomic.Pointer[body]
	isSent    atomic.Bool // a write succeeded that began after the last byte of the body was read
	hasFailed atomic.Bool // a write failed before isSent was true
}

// Write implements net.Conn. It sets c.isSent when the end of the request body was written, and c.hasFailed if
// a write fails before that.
func (c *watchedConn) Write(p []byte) (int, error) {
	b := c.body.Load()
	// net/http reads a part of the body before it writes this part. So after the last read, it writes the end.
	isLastWrite := b != nil && b.isFullyRead.Load()
	n, err := c.Conn.Write(p)
	switch {
	case err == nil && isLastWrite:
		c.isSent.Store(true)
	case err != nil && !c.isSent.Load():
		c.hasFailed.Store(true)
	}
	return n, err
}

// unwrapConn returns the watchedConn of a connection: the connection itself or, for example, the one that a TLS
// connection uses. It panics if there is none, because Config.dial returns only watchedConns.
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
