package request

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// Body is the body of one request. It observes the request closely enough to say
// afterwards whether its receiver can have got all of it.
type Body struct {
	bytes bytes.Reader
	state atomic.Int32 // unread, beingRead or withdrawn
	asked atomic.Bool  // the receiver asked for the body
	read  atomic.Bool  // all of the body was read, to be written
	conn  atomic.Pointer[conn]
}

// The states of a body.
const (
	unread int32 = iota
	beingRead
	withdrawn // and never to be read
)

// errWithdrawn is what net/http finds where it asks for a body too late.
var errWithdrawn = errors.New("the body was withdrawn")

// Reset makes it the body of a request that has these bytes.
func (b *Body) Reset(bytes []byte) { b.bytes.Reset(bytes) }

// Trace observes the request that is made with the context.
func (b *Body) Trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			b.conn.Store(watched(info.Conn))
		},
		Got100Continue: func() { b.asked.Store(true) },
	})
}

// Withdraw keeps a body that nothing was read of from ever being sent, and says
// whether it could.
func (b *Body) Withdraw() bool { return b.state.CompareAndSwap(unread, withdrawn) }

// Withdrawn says whether it was.
func (b *Body) Withdrawn() bool { return b.state.Load() == withdrawn }

// Asked says whether the receiver asked for the body (Expect: 100-continue).
func (b *Body) Asked() bool { return b.asked.Load() }

// SentWhole says whether every byte of the request was given to the kernel.
func (b *Body) SentWhole() bool {
	c := b.conn.Load()
	return c != nil && b.read.Load() && !c.failed.Load()
}

// Read gives the body to net/http.
func (b *Body) Read(p []byte) (int, error) {
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
func (b *Body) Close() error { return nil }

// conn records whether a write failed.
type conn struct {
	net.Conn
	failed atomic.Bool
}

// Watch returns a connection whose writes are watched, for a transport whose requests
// have a Body.
func Watch(c net.Conn) net.Conn { return &conn{Conn: c} }

// watched is the watched connection below one that encrypts. Without one nobody could say
// what arrived, so a transport that does not watch is a defect of ours.
func watched(c net.Conn) *conn {
	for {
		switch above := c.(type) {
		case *conn:
			return above
		case interface{ NetConn() net.Conn }:
			c = above.NetConn()
		default:
			panic("BUG: a request has a connection that nobody watches")
		}
	}
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}
