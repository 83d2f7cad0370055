package ingest

import (
	"net"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// shared is what all connections of a server need of it.
type shared struct {
	config   Config
	log      faultLog
	counters counters
	buffers  *buffers
	features atomic.Pointer[wire.Features]
	draining chan struct{} // closed when the daemon begins to stop

	credentials func(*net.UnixConn) (socket.Peer, error)
}

// isDraining says whether the daemon has begun to stop.
func (s *shared) isDraining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}
