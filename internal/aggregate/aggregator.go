package aggregate

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	uatomic "go.uber.org/atomic"
)

// Aggregator assembles the parts of this package.
type Aggregator struct {
	config    Config
	cycles    cycles
	intervals *registry.Intervals
	balancer  *routing.Balancer
	drainers  []*drainer
	sealer    sealer
	outcomes  outcomes
	sketches  *sketch.Memory
	sealed    uatomic.Uint64
	merged    atomic.Uint64 // spans of groups
	lastSeal  *uatomic.Time
}

// New allocates all memory that does not depend on what is sent, and begins the first
// cycle: what is published before Start waits in the rings.
func New(config Config) (*Aggregator, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	a := &Aggregator{
		config: config, lastSeal: uatomic.NewTime(time.Time{}), outcomes: newOutcomes(),
		sketches: sketch.NewMemory(config.SketchBytes, config.Grid),
	}
	a.balancer = routing.NewBalancer(routing.Config{
		Drainers: config.Drainers, Interval: config.RebalanceInterval, Looks: config.Looks,
	})
	a.cycles.exited, a.cycles.guards = make(chan struct{}, 1), map[*Guard]struct{}{}
	for i := range a.cycles.memory {
		c := &Cycle{width: config.BucketWidth, setLive: a.balancer.SetLive, released: make(chan struct{}, 1)}
		for range config.Drainers {
			c.tables = append(c.tables, NewTable(config.MaxKeys(), config.BucketWidth, a.sketches))
		}
		if config.Merge {
			c.merged = newMerged(&config, a.sketches, &a.merged)
		}
		a.cycles.memory[i] = c
	}
	for i := range config.Drainers {
		slots, err := ring.New[Slot](config.RingSlots)
		if err != nil {
			return nil, fmt.Errorf("make ring: %w", err)
		}
		a.drainers = append(a.drainers, &drainer{
			ring:     slots,
			tables:   [2]*Table{a.cycles.memory[0].tables[i], a.cycles.memory[1].tables[i]},
			reported: make(chan struct{}, 1),
			done:     make(chan struct{}),
		})
	}
	a.sealer = sealer{
		aggregator: a, reports: newReports(), clears: make(chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	a.intervals = registry.NewIntervals(&a.config.Config)
	a.cycles.memory[0].begin(0, time.Now(), a.intervals)
	a.config.Running.Begin(0)
	a.cycles.memory[1].released <- struct{}{}
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

// NewGuard returns a publisher's guard.
func (a *Aggregator) NewGuard() *Guard { return a.cycles.newGuard() }

// Settled returns the number of a cycle before which all have had their outcome, delivered
// or given up, and a channel that is closed when it rises.
func (a *Aggregator) Settled() (through uint64, changed <-chan struct{}) { return a.outcomes.settled() }

// Report asks for a seal now and returns the promise of its delivery, which
// covers everything that was published before the call and is not delivered.
// Requests that come close together share one seal.
func (a *Aggregator) Report(ctx context.Context) (Reported, error) {
	report := a.sealer.reports.ask()
	select {
	case <-report.sealed:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.sealer.done:
		select {
		case <-report.sealed: // by the last seal
		default:
			return nil, ErrStopped
		}
	}
	return report.delivered, nil
}

// MostCollapsed returns the label that most keys have lost a value of since the last call, and
// their number.
func (a *Aggregator) MostCollapsed() (label string, keys uint64) { return a.intervals.MostCollapsed() }

// Masked is how many keys were counted with a mask in the place of a label, by label.
func (a *Aggregator) Masked() map[string]uint64 { return a.intervals.Masked() }

// NewRoute returns a publisher's view of which ring gets which key.
func (a *Aggregator) NewRoute() *routing.Route { return a.balancer.NewRoute() }

// Drainers is the number of rings.
func (a *Aggregator) Drainers() int { return len(a.drainers) }

// RingSlots is the size of each ring.
func (a *Aggregator) RingSlots() int { return a.config.RingSlots }

// Ring is the ring that the drainer of that number empties.
func (a *Aggregator) Ring(drainer int) *ring.Ring[Slot] { return a.drainers[drainer].ring }

// Clear gives up what the current cycle has counted so far: nobody takes it any more. The
// receiver of sealed cycles is told how many snapshots that were. A span that is published
// meanwhile is either before or after the clear, and a Stop that follows finds the clear done.
func (a *Aggregator) Clear() {
	select {
	case a.sealer.clears <- struct{}{}:
	case <-a.sealer.done:
	}
}
