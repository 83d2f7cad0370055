package aggregate

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/sketch"

	"github.com/spanstatsd/spanstatsd/internal/ring"
	uatomic "go.uber.org/atomic"
)

// Config is what the aggregates may use. Every field must be set.
type Config struct {
	Drainers          int                  // goroutines that count, and rings
	Partitions        routing.Partitioning // into how many shares the key space is cut
	RebalanceInterval time.Duration        // how often the shares are levelled; 0: never
	RingSlots         int                  // slots a ring, a power of two
	registry.Config                        // of each interval
	SketchBytes       int                  // of the bins of all sketches, see SketchMemory
	FlushInterval     time.Duration        // the interval: a cycle is no longer than that
	BucketWidth       time.Duration        // of a bucket of end times
	Merge             bool                 // groups that tracers have counted are taken, see Merged
	Deliver           func(*Sealed)        // takes a sealed cycle; must not wait for the network
}

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Drainers: 1, Partitions: routing.Partitioning{Adaptive: routing.DefaultDensity}, RebalanceInterval: 10 * time.Second,
		RingSlots: 1 << 16, Config: registry.DefaultConfig(), SketchBytes: 16 << 20,
		FlushInterval: 10 * time.Second, BucketWidth: 10 * time.Second,
	}
}

// A slot has room for the ids of all keys.
const _ = uint(1<<keyBits - registry.MostKeys)

// Check says what is unusable.
func (c *Config) Check() error {
	switch {
	case c.Drainers < 1 || c.Drainers > 1024:
		return fmt.Errorf("check drainers: %d is not between 1 and 1024", c.Drainers)
	case c.Drainers > c.Partitions.Count(c.Drainers, 0):
		return fmt.Errorf("check drainers: %d are more than the %d partitions; Settle would have lowered them", c.Drainers, c.Partitions.Count(c.Drainers, 0))
	case c.RebalanceInterval != 0 && (c.RebalanceInterval < routing.MinInterval || c.RebalanceInterval > time.Hour):
		return fmt.Errorf("check rebalance-interval: %s is neither 0 nor between %s and 1h", c.RebalanceInterval, routing.MinInterval)
	case c.SketchBytes < minSketchBytes || c.SketchBytes > maxSketchBytes:
		return fmt.Errorf("check sketch-bytes: %d is not between %d and %d", c.SketchBytes, minSketchBytes, maxSketchBytes)
	case c.BucketWidth <= 0:
		return fmt.Errorf("check bucket width: %s is not positive", c.BucketWidth)
	case c.FlushInterval < time.Second || c.FlushInterval > c.BucketWidth:
		return fmt.Errorf("check flush-interval: %s is not between 1s and a bucket's %s", c.FlushInterval, c.BucketWidth)
	case c.Deliver == nil:
		return errors.New("BUG: no one to deliver sealed cycles to")
	}
	if err := c.Partitions.Check(); err != nil {
		return err
	}
	return c.Config.Check()
}

// Settle lowers what can't be used, and says what it did.
func (c *Config) Settle() (warning string) {
	partitions := c.Partitions.Count(c.Drainers, 0)
	if c.Drainers <= partitions {
		return ""
	}
	warning = fmt.Sprintf("%d drainers are more than the %d partitions of --partitions=%s; there will be %d drainers",
		c.Drainers, partitions, c.Partitions, partitions)
	c.Drainers = partitions
	return warning
}

// Aggregator assembles the parts of this package.
type Aggregator struct {
	config    Config
	cycles    cycles
	intervals *registry.Intervals
	balancer  *routing.Balancer
	drainers  []*drainer
	sealer    sealer
	sketches  *sketch.Memory
	sealed    uatomic.Uint64
	merged    atomic.Uint64 // spans of groups
	lastSeal  *uatomic.Time
}

// New sets all memory aside that does not depend on what is sent, and opens the
// first cycle: what is published before Start waits in the rings.
func New(config Config) (*Aggregator, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	a := &Aggregator{config: config, lastSeal: uatomic.NewTime(time.Time{}), sketches: sketch.NewMemory(config.SketchBytes)}
	a.balancer = routing.NewBalancer(routing.Config{
		Drainers: config.Drainers, Partitions: config.Partitions, Interval: config.RebalanceInterval,
	})
	a.cycles.left = make(chan struct{}, 1)
	a.cycles.readers = map[*Reader]struct{}{}
	for i := range a.cycles.slots {
		c := &Cycle{width: config.BucketWidth, live: a.balancer.SetLive, released: make(chan struct{}, 1)}
		for range config.Drainers {
			c.tables = append(c.tables, NewTable(config.MaxKeys(), config.BucketWidth, a.sketches))
		}
		if config.Merge {
			c.merged = newMerged(&config, a.sketches, &a.merged)
		}
		a.cycles.slots[i] = c
	}
	for i := range config.Drainers {
		slots, err := ring.New[Slot](config.RingSlots)
		if err != nil {
			return nil, fmt.Errorf("make ring: %w", err)
		}
		a.drainers = append(a.drainers, &drainer{
			ring:     slots,
			tables:   [2]*Table{a.cycles.slots[0].tables[i], a.cycles.slots[1].tables[i]},
			reported: make(chan struct{}, 1),
			done:     make(chan struct{}),
		})
	}
	a.sealer = sealer{
		aggregator: a, requests: make(chan chan Reported), clears: make(chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	a.intervals = registry.NewIntervals(&a.config.Config)
	a.cycles.slots[0].open(0, time.Now(), a.intervals)
	a.cycles.slots[1].released <- struct{}{}
	return a, nil
}

// Start runs one goroutine a drainer, one that seals and one that balances.
func (a *Aggregator) Start() {
	a.lastSeal.Store(time.Now())
	for _, d := range a.drainers {
		go d.run()
	}
	go a.sealer.run()
	a.balancer.Start()
}

// Stop seals the last cycle, delivers it and ends every goroutine. A batch that
// is being published is finished first; what comes after finds no cycle.
func (a *Aggregator) Stop() {
	a.balancer.Stop()
	close(a.sealer.stop)
	<-a.sealer.done
}

// Blamed returns the label that most keys have lost a value of since the last call, and
// their number.
func (a *Aggregator) Blamed() (label string, keys uint64) { return a.intervals.Blamed() }

// NewReader gives a publisher its place in the cycles.
func (a *Aggregator) NewReader() *Reader { return a.cycles.newReader() }

// NewRoute gives a publisher its way into the rings.
func (a *Aggregator) NewRoute() *routing.Route { return a.balancer.NewRoute() }

// Drainers is the number of rings.
func (a *Aggregator) Drainers() int { return len(a.drainers) }

// RingSlots is the size of each ring.
func (a *Aggregator) RingSlots() int { return a.config.RingSlots }

// Ring is the ring that the drainer of that number empties.
func (a *Aggregator) Ring(drainer int) *ring.Ring[Slot] { return a.drainers[drainer].ring }

// Clear gives up what the current cycle has counted so far: nobody takes it any
// more. The receiver of sealed cycles is told how many snapshots that were. What
// is published meanwhile is on one side of the clear or the other, and a Stop
// that comes behind it finds it done.
func (a *Aggregator) Clear() {
	select {
	case a.sealer.clears <- struct{}{}:
	case <-a.sealer.done:
	}
}

// ErrStopped is what a report gets after the last cycle.
var ErrStopped = errors.New("the daemon is stopping: the last report is on its way")

// Report asks for a seal now and returns the promise of its delivery, which
// covers everything that was published before the call and is not delivered. Requests that come
// close together share one seal.
func (a *Aggregator) Report(ctx context.Context) (Reported, error) {
	answer := make(chan Reported, 1)
	select {
	case a.sealer.requests <- answer:
	case <-a.sealer.done:
		return nil, ErrStopped
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case reported := <-answer:
		return reported, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
