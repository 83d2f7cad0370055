package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/routing"
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
	block    block
	snapshot wire.Snapshot
	window   aggregate.Window
	ageing   aggregate.Ageing
	aged     int      // place in the batch of the span whose end is noted, or below 0
	once     resolved // what a key is that is not remembered
	reader   *aggregate.Guard
	route    *routing.Route
	origin   span.Origin
	originID registry.OriginID
	interval uint64 // number of the interval plus one that originID is valid in
	glance   registry.Glance
	outline  span.Outline // scratch of the key that is being looked at
	key      span.Key     // scratch of the key that is being decoded: parts of the message
	misses   misses
	wasTried bool // the batch was resolved before, and its keys noted
}

// enter makes the publisher one of those who share the rings. One that is a
// connection has its share of the memory for keys.
func (a *admission) enter(isConnection bool) {
	config := &a.server.config
	drainers := config.Aggregator.Drainers()
	a.server.inside.Add(1)
	a.keys = newKeys(config.MaxKeys, config.MaxKeyBytes, a.server.keyMemory.of(isConnection))
	a.batch = newBatch(drainers)
	a.shares = make([]share, drainers)
	a.reader, a.route = config.Aggregator.NewGuard(), config.Aggregator.NewRoute()
}

// leave gives back what enter took.
func (a *admission) leave() {
	a.keys.release()
	a.reader.Close()
	a.server.inside.Add(-1)
}

// isAlone says whether a publisher has nobody to share the rings with.
func (s *Server) isAlone() bool { return s.inside.Load() == 1 }
