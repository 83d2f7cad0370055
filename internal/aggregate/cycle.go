package aggregate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"golang.org/x/sys/cpu"
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

// closedCycle is the current cycle's number once there is no further one.
const closedCycle = ^uint64(0)

// cycles publishes which cycle is current, and knows who is inside one. The package
// comment says why that makes a boundary exact.
type cycles struct {
	current atomic.Uint64
	_       cpu.CacheLinePad
	memory  [2]*Cycle // cycle n is memory[n%2]

	waiting atomic.Bool   // the sealer waits for guards to exit
	exited  chan struct{} // a token when one may have

	mu     sync.Mutex
	guards map[*Guard]struct{}
}

func (c *cycles) at(number uint64) *Cycle { return c.memory[number%2] }

// Guard keeps the cycle that its publisher is inside from being sealed: it is the
// publisher's epoch guard. A connection has one and uses it from its own goroutine.
type Guard struct {
	_      cpu.CacheLinePad
	inside atomic.Uint64 // number of the cycle plus one, 0 when outside
	_      cpu.CacheLinePad
	cycles *cycles
}

func (c *cycles) newGuard() *Guard {
	g := &Guard{cycles: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.guards[g] = struct{}{}
	return g
}

// Close ends the guard's use. It must be outside.
func (g *Guard) Close() {
	g.cycles.mu.Lock()
	defer g.cycles.mu.Unlock()
	delete(g.cycles.guards, g)
}

// Enter returns the current cycle, which is not sealed before Exit. It returns
// nil when the last cycle has been sealed: nothing can be published any more.
func (g *Guard) Enter() *Cycle {
	for {
		number := g.cycles.current.Load()
		if number == closedCycle {
			return nil
		}
		if g.enter(number) {
			return g.cycles.at(number)
		}
	}
}

// enter shows the cycle as entered, and then looks again whether it is current. If not,
// the sealer may not have seen the guard, or may be waiting for it.
func (g *Guard) enter(number uint64) bool {
	g.inside.Store(number + 1)
	if g.cycles.current.Load() == number {
		return true
	}
	g.Exit()
	return false
}

// Exit says that everything of the entered cycle has been published.
func (g *Guard) Exit() {
	g.inside.Store(0)
	if g.cycles.waiting.Load() {
		select {
		case g.cycles.exited <- struct{}{}:
		default: // a token is there already; the sealer will look again
		}
	}
}

// awaitExits returns when no guard is inside the cycle any more. The caller has made
// another cycle current, so none can enter it again.
func (c *cycles) awaitExits(number uint64) {
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.guards {
		for g.inside.Load() == number+1 {
			<-c.exited
		}
	}
}

// windowBuckets is how many buckets one cycle can write: the one before the
// cycle's own, its own, and the next, which a span can reach when it ends
// between a bucket's boundary and the seal that follows it.
const windowBuckets = 3

// oldestBucket is the start of the first of them, for a cycle that started then.
func oldestBucket(started time.Time, width int64) int64 {
	now := started.UnixNano()
	return now - now%width - width
}

// Window tells a publisher in which of a cycle's buckets a span is counted. It is
// made anew for each batch, after the batch was read: no span of it can have ended
// after the first time that the window has to look at the clock.
type Window struct {
	start int64  // of the cycle's own bucket
	width uint64 // of a bucket
	own   Place  // of a span that ended in it
	now   int64  // 0 until it was asked for
}

// NewWindow is the window of a cycle of that number that started then.
func NewWindow(number uint64, started time.Time, width time.Duration) Window {
	return Window{
		start: oldestBucket(started, int64(width)) + int64(width), width: uint64(width),
		own: Place{cycle: uint8(number & 1), bucket: 1},
	}
}

// Place is where a span with this end is counted.
func (w *Window) Place(end int64) Place {
	if uint64(end-w.start) < w.width {
		return w.own
	}
	return w.clamp(end)
}

// clamp finds the bucket of an end outside the cycle's own. A span can't have
// ended after now.
func (w *Window) clamp(end int64) Place {
	place := Place{cycle: w.own.cycle}
	width := int64(w.width)
	oldest := w.start - width
	if end < oldest {
		place.clamp = late
		return place
	}
	if end < w.start {
		return place
	}
	if w.now == 0 {
		w.now = time.Now().UnixNano()
	}
	// The wall clock may have stepped back below the window since the cycle
	// started; then now has no bucket here, and the cycle's own is the nearest.
	bucket, latest := (end-oldest)/width, (max(w.now, w.start)-oldest)/width
	if bucket > latest {
		bucket, place.clamp = latest, early
	}
	place.bucket = uint8(min(bucket, windowBuckets-1))
	return place
}

// Slot is one snapshot on its way through a ring: all that a drainer needs of it, in
// numbers. It holds no pointer, so the garbage collector has nothing to scan in
// the rings however large they are, and no write barrier runs when one is published.
type Slot struct {
	Duration uint64  // nanoseconds
	End      int64   // nanoseconds since the Unix epoch
	Weight   float64 // how many spans it stands for
	Key      registry.KeyID
	Flags    span.Flags
	Place
}

// Place is where a snapshot is counted. A Window makes it.
type Place struct {
	cycle  uint8 // low bit of the cycle's number: two are in use at most
	bucket uint8 // in the cycle's window
	clamp  clamp
}

// clamp says whether a snapshot is counted in another bucket than the one it ended in.
type clamp uint8

const (
	unclamped clamp = iota
	late            // it ended before the window, and is counted in the oldest bucket
	early           // it ends after now, and is counted in the bucket of now
)
