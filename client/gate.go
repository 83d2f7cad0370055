package client

import "sync/atomic"

// gate says whether snapshots are taken, and why not. It opens and shuts with what
// the daemon wants and with how long it is away, until Close shuts it for good.
type gate struct{ why atomic.Uint32 }

// shut is why it is shut, none while it is open.
func (g *gate) shut() reason { return reason(g.why.Load()) }

// set opens or shuts it, unless it was shut for good.
func (g *gate) set(why reason) {
	for from := g.why.Load(); reason(from) != closed; from = g.why.Load() {
		if g.why.CompareAndSwap(from, uint32(why)) {
			return
		}
	}
}
