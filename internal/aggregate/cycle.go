package aggregate

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Cycle is what is sealed at once: a flush interval, or the part of one before or after a
// report. A publisher that is inside it, see Guard, may use it; its memory is that of
// every second cycle.
type Cycle struct {
	number   uint64
	started  time.Time
	window   Window
	width    time.Duration // of a bucket
	interval uint64
	registry *registry.Registry // of the interval
	tables   []*Table           // by drainer
	merged   *Merged            // nil where nothing is merged
	setLive  func(int)          // is told how many keys there are when there is one more
	released chan struct{}      // holds a token while nothing of an earlier cycle uses this memory
}

// Number tells this cycle from all others.
func (c *Cycle) Number() uint64 { return c.number }

// Interval tells this cycle's interval from all others. Ids of keys and origins are
// valid only within one.
func (c *Cycle) Interval() uint64 { return c.interval }

// Registry is that of the cycle's interval.
func (c *Cycle) Registry() *registry.Registry { return c.registry }

// Window is that of the cycle, for one batch.
func (c *Cycle) Window() Window { return c.window }

// AdmitOrigin numbers an origin for this interval. It reports false where the
// interval has no room for one more.
func (c *Cycle) AdmitOrigin(o span.Origin) (registry.OriginID, bool) {
	return c.registry.AdmitOrigin(o)
}

// JoinOrigin numbers an origin of a process for this interval. One that there is no room
// for is its service's, or the common origin of all such.
func (c *Cycle) JoinOrigin(o span.Origin, process int32) (id registry.OriginID, isShared bool) {
	return c.registry.JoinOrigin(o, process)
}

// Admit charges a key to its origin's budgets and numbers it for this interval. It
// keeps nothing of the key, whose labels may be parts of a buffer. A key is admitted at its
// first two uses in an interval, so that the registry knows that it recurs.
func (c *Cycle) Admit(origin registry.OriginID, key *span.Key) registry.Admission {
	admission := c.registry.Admit(origin, key)
	c.setLive(int(admission.ID) + 1) // ids are dense
	return admission
}

// AdmitUnlabelled numbers the spans of an origin that are counted without their labels.
func (c *Cycle) AdmitUnlabelled(origin registry.OriginID) registry.Admission {
	admission := c.registry.AdmitUnlabelled(origin)
	c.setLive(int(admission.ID) + 1)
	return admission
}

// begin makes the memory of a released cycle that of a new one.
func (c *Cycle) begin(number uint64, now time.Time, intervals *registry.Intervals) {
	c.number, c.started = number, now
	c.window = NewWindow(number, now, c.width)
	c.interval, c.registry = intervals.Number(), intervals.Registry()
	for _, table := range c.tables {
		table.Begin(now)
	}
	if c.merged != nil {
		c.merged.begin(now)
	}
}

// release empties the cycle's memory and lets a new one begin in it.
func (c *Cycle) release() {
	for _, table := range c.tables {
		table.Reset()
	}
	if c.merged != nil {
		c.merged.reset()
	}
	c.released <- struct{}{}
}
