package health

import (
	"net"
	"sync"
	"sync/atomic"
)

// maxHTTPConnections bounds connections: probes, scrapes and people are a handful.
// Each costs some tens of KiB, and nothing else bounds how many a process beside us
// opens.
const maxHTTPConnections = 256

// limitListener closes connections beyond the limit. It does not make them wait,
// since they might wait for others that never end.
type limitListener struct {
	net.Listener
	open    atomic.Int64
	refused atomic.Uint64
}

// Accept returns the next connection within the limit.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= maxHTTPConnections {
			return &limitedConn{Conn: conn, closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		l.refused.Add(1)
		conn.Close()
	}
}

// limitedConn counts as open until its first Close.
type limitedConn struct {
	net.Conn
	closed func()
}

func (c *limitedConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}
