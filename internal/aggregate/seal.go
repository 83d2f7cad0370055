package aggregate

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// All of this is called by the sealer's goroutine alone.

// seal begins the next cycle, ends the current one and delivers it. At a boundary the
// next interval begins with the cycle.
func (a *Aggregator) seal(isBoundary bool) *Delivery {
	number := a.cycles.current.Load()
	next := a.cycles.at(number + 1)
	<-next.released // the flush may still be reading what this memory held two cycles ago
	if isBoundary {
		a.intervals.Begin()
	}
	next.begin(number+1, time.Now(), a.intervals)
	a.cycles.current.Store(number + 1)
	return a.deliver(a.cycles.at(number))
}

// sealLast ends the current cycle with none after it, and the drainers.
func (a *Aggregator) sealLast() *Delivery {
	number := a.cycles.current.Load()
	a.cycles.current.Store(closedCycle)
	delivery := a.deliver(a.cycles.at(number))
	for _, d := range a.drainers {
		d.ring.Send(ring.Signal{Kind: ring.Stop})
		<-d.done
	}
	return delivery
}

// deliver waits until everything of a cycle that is not current any more has been
// counted, and hands it on.
func (a *Aggregator) deliver(c *Cycle) *Delivery {
	a.cycles.awaitExits(c.number)
	a.signal(ring.Signal{Kind: ring.Report, Arg: c.number})
	sealed := c.sealed()
	delivery := sealed.Delivery
	a.sealed.Inc()
	a.lastSeal.Store(time.Now())
	a.config.Deliver(sealed)
	return delivery
}

// clear empties the current cycle's tables, and tells the receiver how many
// snapshots were given up, for its books. The cycle goes on with its keys.
func (a *Aggregator) clear() {
	number := a.cycles.current.Load()
	a.signal(ring.Signal{Kind: ring.Clear, Arg: number})
	sealed := NewSealed(number, time.Now(), time.Now(), a.config.BucketWidth, nil, nil)
	for _, d := range a.drainers {
		sealed.Cleared += d.cleared
	}
	if merged := a.cycles.at(number).merged; merged != nil {
		sealed.Cleared += merged.clear()
	}
	a.config.Deliver(sealed)
}

// signal sends one to every drainer, and returns when all have answered.
func (a *Aggregator) signal(signal ring.Signal) {
	for _, d := range a.drainers {
		// The sealer is the only sender and waits for each answer, so the side
		// channel can't be full.
		if !d.ring.Send(signal) {
			panic("BUG: a ring's side channel is full of signals that nobody else sends")
		}
	}
	for _, d := range a.drainers {
		<-d.reported
	}
}
