package conns

import (
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// Conn is an accepted connection, and what the kernel says of who is at its other end.
type Conn struct {
	net.Conn
	Container string      // "" where the kernel does not tell
	HTTP2     atomic.Bool // it speaks HTTP/2; who serves it finds out
	pid       int32       // 0 where the kernel does not tell

	// The limiter's lock guards these.
	idleSince time.Time // zero while a request is under way
	isOver    bool      // we have closed it, or are about to
}

// identify asks the kernel for the peer of a Unix socket, and reports whether it may
// connect.
func (c *Conn) identify(allow []uint32) bool {
	unix, ok := c.Conn.(*net.UnixConn)
	if !ok {
		return true
	}
	peer, err := socket.PeerOf(unix)
	c.pid, c.Container = peer.PID, peer.Container
	return len(allow) == 0 || err == nil && slices.Contains(allow, peer.UID)
}
