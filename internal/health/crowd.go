package health

import (
	"net"
	"sync"
	"sync/atomic"
)

// maxHTTPConnections is how many may look at once: probes, scrapes and people are
// a handful. Each costs some tens of KiB, and nothing else bounds how many a
// process beside us opens.
const maxHTTPConnections = 256

// crowd is a listener that closes what comes beyond its limit. To let it wait
// instead would let it wait for those that never leave.
type crowd struct {
	net.Listener
	inside  atomic.Int64
	refused atomic.Uint64
}

// Accept returns the next connection that there is room for.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.inside.Add(1) <= maxHTTPConnections {
			return &visitor{Conn: conn, leave: sync.OnceFunc(func() { c.inside.Add(-1) })}, nil
		}
		c.inside.Add(-1)
		c.refused.Add(1)
		conn.Close()
	}
}

// visitor makes room when it is closed, however often that is.
type visitor struct {
	net.Conn
	leave func()
}

func (v *visitor) Close() error {
	defer v.leave()
	return v.Conn.Close()
}
