package post

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// body is the body of one request. It observes the request closely enough to report afterwards whether the
// destination can have received all of it.
type body struct {
	bytes bytes.Reader
	state atomic.Int32 // unread, beingRead or withdrawn
	asked atomic.Bool  // the destination asked for the body
	read  atomic.Bool  // all of the body was read by net/http
	conn  atomic.Pointer[watchedConn]
}

// The states of a body.
const (
	unread int32 = iota
	beingRead
	withdrawn // and never to be read
)

// errWithdrawn is what net/http gets if it reads a body too late.
var errWithdrawn = errors.New("the body was withdrawn")

// trace observes the request that is made with the context.
func (b *body) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn:        func(info httptrace.GotConnInfo) { b.conn.Store(watched(info.Conn)) },
		Got100Continue: func() { b.asked.Store(true) },
	})
}

// withdraw keeps a body from being sent, if nothing was read of it yet, and reports whether it did.
func (b *body) withdraw() bool { return b.state.CompareAndSwap(unread, withdrawn) }

// hasConnection reports whether the request had a connection.
func (b *body) hasConnection() bool { return b.conn.Load() != nil }

// sentWhole reports whether every byte of the request was given to the kernel.
func (b *body) sentWhole() bool {
	c := b.conn.Load()
	return c != nil && b.read.Load() && !c.failed.Load()
}

// Read gives the body to net/http.
func (b *body) Read(p []byte) (int, error) {
	if b.state.CompareAndSwap(unread, beingRead); b.state.Load() == withdrawn {
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

// watched is the watched connection below an encrypted one. A transport without one is a bug, because
// nothing would be known about what arrived.
func watched(c net.Conn) *watchedConn {
	for {
		switch above := c.(type) {
		case *watchedConn:
			return above
		case interface{ NetConn() net.Conn }:
			c = above.NetConn()
		default:
			panic("BUG: a request has a connection that is not watched")
		}
	}
}
