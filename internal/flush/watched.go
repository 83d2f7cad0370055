package flush

import (
	"bytes"
	"context"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// watchedBody is the body of one request. It observes the request closely enough to
// say afterwards whether the agent can have received all of it.
//
// net/http reports a request as written when its last bytes are in a buffer of
// its own, and also when it was never asked for the body. So the body is watched
// too, and the connection: a request arrived whole only if all of its body was
// read and none of the connection's writes failed.
type watchedBody struct {
	bytes bytes.Reader
	state atomic.Int32 // unread, beingRead or withdrawn
	asked atomic.Bool  // the agent asked for the body
	read  atomic.Bool  // all of the body was read, to be written
	conn  atomic.Pointer[watchedConn]
}

// The states of a body.
const (
	unread int32 = iota
	beingRead
	withdrawn // and never to be read
)

// withdraw keeps a body that nothing was read of from ever being sent, and says
// whether it could.
func (b *watchedBody) withdraw() bool { return b.state.CompareAndSwap(unread, withdrawn) }

// trace observes the request that is made with the context.
func (b *watchedBody) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if conn, ok := info.Conn.(*watchedConn); ok {
				b.conn.Store(conn)
			}
		},
		Got100Continue: func() { b.asked.Store(true) },
	})
}

// Read gives the body to net/http.
func (b *watchedBody) Read(p []byte) (int, error) {
	if b.state.CompareAndSwap(unread, beingRead); b.state.Load() == withdrawn {
		return 0, errNotAsked
	}
	n, err := b.bytes.Read(p)
	if b.bytes.Len() == 0 {
		b.read.Store(true)
	}
	return n, err
}

// Close implements io.ReadCloser.
func (b *watchedBody) Close() error { return nil }

// sentWhole says whether every byte of the request was given to the kernel. It may
// be asked once RoundTrip has returned: net/http lets go of a failed request
// only after its writing goroutine has ended.
func (b *watchedBody) sentWhole() bool {
	conn := b.conn.Load()
	return conn != nil && b.read.Load() && !conn.failed.Load()
}

// watchedConn records whether a write failed.
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
