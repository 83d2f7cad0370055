package flush

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// watchedBody is the body of one request. It observes the request closely enough to
// say afterwards whether the agent can have received all of it.
//
// The body is sent when the agent asks for it (Expect: 100-continue). An agent that
// hangs or ends before it reads does not ask, and then has nothing: the payload can
// be tried again.
//
// net/http reports a request as written when its last bytes are in a buffer of
// its own, and also when it was never asked for the body. So the body is watched
// too, and the connection: a request arrived whole only if all of its body was
// read and none of the connection's writes failed.
type watchedBody struct {
	bytes    bytes.Reader
	buffered atomic.Bool
	asked    atomic.Bool // the agent asked for the body
	read     atomic.Bool // all of the body was read, to be written
	conn     atomic.Pointer[watchedConn]
}

// trace observes the request that is made with the context.
func (b *watchedBody) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if conn, ok := info.Conn.(*watchedConn); ok {
				b.conn.Store(conn)
			}
		},
		Got100Continue: func() { b.asked.Store(true) },
		WroteRequest:   func(info httptrace.WroteRequestInfo) { b.buffered.Store(info.Err == nil) },
	})
}

// Read gives the body to net/http.
func (b *watchedBody) Read(p []byte) (int, error) {
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
	return conn != nil && b.read.Load() && b.buffered.Load() && !conn.failed.Load()
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

const (
	expectTimeout   = time.Second    // within which an agent that is well asks for a body
	noExpectTimeout = 24 * time.Hour // longer than any request may take
)

// newTransport dials the agent and nothing else, anew for each request. An idle
// connection can be closed by the agent at the moment when it is used again;
// the request is then written whole to nobody, which cannot be told from one
// that was counted. A connection for each request is cheap here: there is one
// request an origin in ten seconds, and the agent is on the same host.
//
// A body that nobody asks for is sent all the same after expectTimeout.
func newTransport(url AgentURL, expectTimeout time.Duration) *http.Transport {
	var dialer net.Dialer
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, url.Network, url.Address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn}, nil
		},
		DisableCompression:     true,
		DisableKeepAlives:      true,
		ExpectContinueTimeout:  expectTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
