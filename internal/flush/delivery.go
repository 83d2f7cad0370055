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

// delivery is one try to hand a request over, watched closely enough to say
// afterwards whether the agent can have received all of it.
//
// The body is sent when the agent asks for it (Expect: 100-continue). An agent
// that hangs, or that goes while we knock, does not ask, and then has nothing:
// what would be a lost answer is a payload that can be tried again.
//
// net/http reports a request as written when its last bytes are in a buffer of
// its own, and also when it was never asked for the body. So the body is watched
// too, and the connection: a request arrived whole only if all of its body was
// taken and none of the connection's writes failed.
type delivery struct {
	body     bytes.Reader
	buffered atomic.Bool
	asked    atomic.Bool // the agent asked for the body
	taken    atomic.Bool // all of the body was read, to be written
	conn     atomic.Pointer[watchedConn]
}

func (d *delivery) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if conn, ok := info.Conn.(*watchedConn); ok {
				d.conn.Store(conn)
			}
		},
		Got100Continue: func() { d.asked.Store(true) },
		WroteRequest:   func(info httptrace.WroteRequestInfo) { d.buffered.Store(info.Err == nil) },
	})
}

// Read gives the body to net/http.
func (d *delivery) Read(p []byte) (int, error) {
	n, err := d.body.Read(p)
	if d.body.Len() == 0 {
		d.taken.Store(true)
	}
	return n, err
}

// Close implements io.ReadCloser.
func (d *delivery) Close() error { return nil }

// whole says whether every byte of the request was given to the kernel. It may
// be asked once RoundTrip has returned: net/http lets go of a failed request
// only after its writing goroutine has ended.
func (d *delivery) whole() bool {
	conn := d.conn.Load()
	return conn != nil && d.taken.Load() && d.buffered.Load() && !conn.failed.Load()
}

// watchedConn remembers whether a write failed.
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
	longEnough = time.Second    // for any agent that is well to ask for a body
	forEver    = 24 * time.Hour // longer than any request may take
)

// newTransport dials the agent and nothing else, anew for each request. An idle
// connection can be closed by the agent at the moment when it is used again;
// the request is then written whole to nobody, which cannot be told from one
// that was counted. Against that, a connection each costs nothing: there is one
// request an origin in ten seconds, and the agent is on the same host.
//
// A body that nobody asks for is sent all the same when patience ends.
func newTransport(url AgentURL, patience time.Duration) *http.Transport {
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
		ExpectContinueTimeout:  patience,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
