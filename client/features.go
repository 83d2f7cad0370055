package client

import (
	"reflect"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Features is what the agent behind the daemon wants counted: whether stats at
// all, which peer tags, which span kinds, which resources not.
type Features = wire.Features

// features is what the daemon said last of what it wants.
type features struct {
	now     atomic.Pointer[Features]
	changes chan struct{} // has room for one notice
}

// newFeatures wants stats and nothing else, before a daemon has said anything.
func newFeatures() *features {
	f := &features{changes: make(chan struct{}, 1)}
	f.now.Store(&Features{Stats: true})
	return f
}

// set is called by whoever reads from the daemon, one at a time. The gate is shut while no
// stats are wanted.
func (f *features) set(said Features, g *gate) {
	if said.Stats {
		g.set(none)
	} else {
		g.set(notWanted)
	}
	if reflect.DeepEqual(said, *f.now.Load()) {
		return
	}
	f.now.Store(&said)
	select {
	case f.changes <- struct{}{}:
	default:
	}
}
