package client

import "sync/atomic"

// gate says whether snapshots are taken. It opens and shuts with what the
// daemon wants and with how long it is away, until Close shuts it for good.
type gate struct{ state atomic.Uint32 }

const (
	gateOpen uint32 = iota
	gateNotWanted
	gateAway
	gateClosed
)

// shut reports whether it is shut, and why.
func (g *gate) shut() (why reason, is bool) {
	switch g.state.Load() {
	case gateOpen:
		return 0, false
	case gateNotWanted:
		return notWanted, true
	case gateAway:
		return disconnected, true
	}
	return closed, true
}

// want opens or shuts the gate, as the daemon that is there wants it.
func (g *gate) want(stats bool) {
	if stats {
		g.set(gateOpen)
	} else {
		g.set(gateNotWanted)
	}
}

// leave shuts it until a daemon says what it wants.
func (g *gate) leave() { g.set(gateAway) }

// set changes the state, unless it is closed.
func (g *gate) set(to uint32) {
	for {
		from := g.state.Load()
		if from == gateClosed || g.state.CompareAndSwap(from, to) {
			return
		}
	}
}

func (g *gate) close() { g.state.Store(gateClosed) }
