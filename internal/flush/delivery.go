package flush

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// delivery is one try to hand a request over, watched closely enough to say
// afterwards whether the agent can have received all of it.
//
// net/http reports a request as written when its last bytes are in a buffer of
// its own. So the connection itself is asked too: a request arrived whole only
// if none of the connection's writes failed.
type delivery struct {
	buffered atomic.Bool
	conn     atomic.Pointer[watchedConn]
}

func (d *delivery) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
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

// newTransport dials the agent and nothing else, anew for each request. An idle
// connection can be closed by the agent at the moment when it is used again;
// the request is then written whole to nobody, which cannot be told from one
// that was counted. Against that, a connection each costs nothing: there is one
// request an origin in ten seconds, and the agent is on the same host.
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
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
