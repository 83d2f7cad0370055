package flush

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// delivery is one try to hand a request over, watched closely enough to say
// afterwards whether the agent can have received all of it.
//
// net/http reports a request as written when its last bytes are in a buffer of
// its own. So the connection itself is asked too: a request arrived whole only
// if none of the connection's writes failed.
type delivery struct {
	reused   atomic.Bool
	buffered atomic.Bool
	conn     atomic.Pointer[watchedConn]
}

func (d *delivery) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			d.reused.Store(info.Reused)
			if conn, ok := info.Conn.(*watchedConn); ok {
				d.conn.Store(conn)
			}
		},
		WroteRequest: func(info httptrace.WroteRequestInfo) { d.buffered.Store(info.Err == nil) },
	})
}

// whole says whether every byte of the request was given to the kernel. It may
// be asked once RoundTrip has returned: net/http lets go of a failed request
// only after its writing goroutine has ended.
func (d *delivery) whole() bool {
	conn := d.conn.Load()
	return conn != nil && d.buffered.Load() && !conn.failed.Load()
}

// watchedConn remembers whether a write failed. After one the connection is
// never used again, so there is nothing to forget.
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

// newTransport dials the agent and nothing else, one connection at a time.
// Idle connections are closed before the agent's own 60 s, so that a request
// seldom meets one that is about to die.
func newTransport(url AgentURL) *http.Transport {
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
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// finish reads a little of what is left of an answer, so that its connection
// can be used again, and closes it.
func finish(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxReason)
	_ = resp.Body.Close()
}
