package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// admission is one publisher's way into the rings: what it has learnt of its
// keys, where it is in the cycles, and what it has in each ring. A publisher is
// a connection, or a Publisher of what reaches us in another way. One goroutine
// at a time uses it.
type admission struct {
	server   *Server
	keys     *keys
	batch    batch
	shares   []share // by drainer
	snapshot wire.Snapshot
	reader   *aggregate.Reader
	route    *aggregate.Route
	origin   span.Origin
	originID aggregate.OriginID
	interval uint64   // number of the interval plus one that originID is valid in
	key      span.Key // scratch of the key that is being decoded: parts of the message
	misses   misses
}

// enter makes the publisher one of those who share the rings. One that is a
// connection has its share of the memory for keys.
func (c *admission) enter(isConnection bool) {
	config := &c.server.config
	drainers := config.Aggregator.Drainers()
	c.server.inside.Add(1)
	c.keys = newKeys(config.MaxKeys, config.MaxKeyBytes, c.server.keyMemory.of(isConnection))
	c.batch = newBatch(drainers)
	c.shares = make([]share, drainers)
	c.reader, c.route = config.Aggregator.NewReader(), config.Aggregator.NewRoute()
}

// leave gives back what enter took.
func (c *admission) leave() {
	c.keys.release()
	c.reader.Close()
	c.server.inside.Add(-1)
}

// isAlone says whether a publisher has nobody to share the rings with.
func (s *Server) isAlone() bool { return s.inside.Load() == 1 }
