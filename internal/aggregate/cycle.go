package aggregate

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"golang.org/x/sys/cpu"
)

// Cycle is what is sealed at once, while it is open: what a Reader that is inside
// it may use. It is an interval, or the part of one before or after a report.
type Cycle struct {
	number   uint64
	opened   time.Time
	window   Window
	width    time.Duration // of a bucket
	interval uint64
	registry *registry.Registry // of the interval
	tables   []*Table           // by drainer
	merged   *Merged            // nil where nothing is merged
	live     func(int)          // is told how many keys there are when there is one more
	released chan struct{}      // holds a token while nothing of an earlier cycle uses this memory
}

// Number tells this cycle from all others.
func (c *Cycle) Number() uint64 { return c.number }

// Interval tells this cycle's interval from all others. Ids of keys and origins are
// valid only within one.
func (c *Cycle) Interval() uint64 { return c.interval }

// Registry is that of the cycle's interval.
func (c *Cycle) Registry() *registry.Registry { return c.registry }

// AdmitOrigin numbers an origin for this interval. It reports false where the
// interval has no room for one more.
func (c *Cycle) AdmitOrigin(o span.Origin) (registry.OriginID, bool) {
	return c.registry.AdmitOrigin(o)
}

// Admit charges a key to its origin's budgets and numbers it for this interval. It
// keeps nothing of the key, whose labels may be parts of a buffer.
func (c *Cycle) Admit(origin registry.OriginID, key *span.Key) registry.Admission {
	admission := c.registry.Admit(origin, key)
	c.live(int(admission.ID) + 1) // ids are dense
	return admission
}

// closedCycle is the current cycle's number once there is no further one.
const closedCycle = ^uint64(0)

// cycles publishes which cycle is current and knows who is inside one. See the
// package comment for why that makes a boundary exact.
type cycles struct {
	current atomic.Uint64
	_       cpu.CacheLinePad
	slots   [2]*Cycle // cycle n is slots[n%2]

	waiting atomic.Bool   // the sealer waits for readers to leave
	left    chan struct{} // a token when one may have

	mu      sync.Mutex
	readers map[*Reader]struct{}
}

// Reader is one publisher's place in the cycles: a connection has one and uses
// it from its own goroutine.
type Reader struct {
	_      cpu.CacheLinePad
	inside atomic.Uint64 // number of the cycle plus one, 0 when outside
	_      cpu.CacheLinePad
	cycles *cycles
}

func (c *cycles) newReader() *Reader {
	r := &Reader{cycles: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readers[r] = struct{}{}
	return r
}

// Close ends the reader's use of the cycles. It must be outside.
func (r *Reader) Close() {
	r.cycles.mu.Lock()
	defer r.cycles.mu.Unlock()
	delete(r.cycles.readers, r)
}

// Enter returns the current cycle, which is not sealed before Exit. It returns
// nil when the last cycle has been sealed: nothing can be published any more.
func (r *Reader) Enter() *Cycle {
	for {
		number := r.cycles.current.Load()
		if number == closedCycle {
			return nil
		}
		r.inside.Store(number + 1)
		if r.cycles.current.Load() == number {
			return r.cycles.slots[number%2]
		}
		// The cycle was sealed between the two looks; the sealer may be waiting
		// for what we showed.
		r.Exit()
	}
}

// Exit says that everything of the entered cycle has been published.
func (r *Reader) Exit() {
	r.inside.Store(0)
	if r.cycles.waiting.Load() {
		select {
		case r.cycles.left <- struct{}{}:
		default: // a token is there already; the sealer will look again
		}
	}
}

// waitForReaders returns when no reader is inside the cycle any more. The
// caller has made another cycle current, so none can enter it again.
func (c *cycles) waitForReaders(number uint64) {
	c.waiting.Store(true)
	defer c.waiting.Store(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.readers {
		for r.inside.Load() == number+1 {
			<-c.left
		}
	}
}
