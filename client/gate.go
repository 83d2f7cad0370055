package client

import "sync/atomic"

// gate says whether snapshots are taken. It opens and shuts with what the
// daemon wants, until Close shuts it for good.
type gate struct{ state atomic.Uint32 }

const (
	gateOpen uint32 = iota
	gateNotWanted
	gateClosed
)

// shut reports whether it is shut, and why.
func (g *gate) shut() (why reason, is bool) {
	switch g.state.Load() {
	case gateOpen:
		return 0, false
	case gateNotWanted:
		return notWanted, true
	}
	return closed, true
}

// want opens or shuts the gate, unless it is closed.
func (g *gate) want(stats bool) {
	from, to := gateOpen, gateNotWanted
	if stats {
		from, to = to, from
	}
	g.state.CompareAndSwap(from, to)
}

func (g *gate) close() { g.state.Store(gateClosed) }
