package aggregate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
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

// Config is what the aggregates may use. Every field but Looks and Running must be set.
type Config struct {
	Drainers          int              // goroutines that count, and rings
	RebalanceInterval time.Duration    // how often the drainers are levelled; 0: never
	Looks             <-chan time.Time // see routing.Config
	RingSlots         int              // slots a ring, a power of two
	registry.Config                    // of each interval
	SketchBytes       int              // of the bins of all sketches, see sketch.Memory
	Grid              *sketch.Grid     // the cells that durations are counted in
	FlushInterval     time.Duration    // the interval: a cycle is no longer than that
	BucketWidth       time.Duration    // of a bucket of end times
	Merge             bool             // groups that tracers have counted are taken, see Merged
	Deliver           func(*Sealed)    // takes a sealed cycle; must not wait for the network
	Running           *recovery.File   // that the next daemon reads; nil: none
}

// The bounds of Config.SketchBytes: a chunk for every table of a few drainers,
// and as many pages as their numbers can name with room to spare.
const (
	minSketchBytes = 1 << 20
	maxSketchBytes = 1 << 30
)

// DefaultConfig is the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Drainers: 1, RebalanceInterval: 10 * time.Second, RingSlots: 1 << 16,
		Config: registry.DefaultConfig(), SketchBytes: 16 << 20, Grid: sketch.AgentGrid(),
		FlushInterval: 10 * time.Second, BucketWidth: 10 * time.Second,
	}
}

// Check says everything that is unusable.
func (c *Config) Check() (err error) {
	if c.RebalanceInterval != 0 &&
		(c.RebalanceInterval < routing.MinInterval || c.RebalanceInterval > time.Hour) {
		err = errors.Join(err, fmt.Errorf("BUG: the interval of levelling, %s, is neither 0 nor between %s "+
			"and 1h", c.RebalanceInterval, routing.MinInterval))
	}
	if c.Deliver == nil {
		err = errors.Join(err, errors.New("BUG: no one to deliver sealed cycles to"))
	}
	if c.Grid == nil {
		err = errors.Join(err, errors.New("BUG: no grid to count durations in"))
	}
	return errors.Join(err,
		check.Number("drainers", c.Drainers, 1, 1024),
		check.Size("sketch-bytes", c.SketchBytes, minSketchBytes, maxSketchBytes),
		check.Time("bucket width", c.BucketWidth, 1, math.MaxInt64),
		check.Time("flush-interval", c.FlushInterval, time.Second, c.BucketWidth), // no longer than a bucket
		c.Config.Check(),
	)
}

// Memory is the most that the aggregates may come to use: what their limits add
// up to.
func (c *Config) Memory() []memory.Part {
	slot := int(unsafe.Sizeof(Slot{})) + 8 // with its word of the sequence
	return []memory.Part{
		{Name: "rings", Bytes: int64(c.Drainers * c.RingSlots * slot), Flag: "ring-slots"},
		{Name: "tables", Bytes: int64(c.TableBytes()), Flag: "max-aggregates"},
		{Name: "sketches", Bytes: int64(c.SketchBytes), Flag: "sketch-bytes"},
		{Name: "labels", Bytes: int64(c.Config.Bytes()), Flag: "label-bytes"},
	}
}

// TableBytes is the most memory that all tables can take with these limits, besides what
// their sketches take from sketch.Memory: every key with spans and errors in every bucket
// of the window, counted by every drainer, in both of the cycles that have memory. Real
// traffic takes a sixth of it or less: a key is one drainer's, and its spans end in one
// bucket.
func (c *Config) TableBytes() int {
	each := unsafe.Sizeof(row{}) + unsafe.Sizeof(failed{}) + unsafe.Sizeof(uint32(0))
	return 2 * c.Drainers * windowBuckets * c.MaxKeys() * int(each)
}

// reports is where those who ask for a report meet the sealer. All who ask before a seal
// wait for one answer, so whoever gives up leaves nothing behind, however many do.
type reports struct {
	asked chan struct{} // holds a token when somebody has asked

	mu   sync.Mutex
	next *report // nil where nobody asks
}

// report is the answer of one seal to all who asked for it.
type report struct {
	sealed    chan struct{} // closed when the rest is known
	delivered Reported
}

func newReports() reports { return reports{asked: make(chan struct{}, 1)} }

// ask joins those who wait for the next seal.
func (r *reports) ask() *report {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &report{sealed: make(chan struct{})}
		select {
		case r.asked <- struct{}{}:
		default: // a token is there already
		}
	}
	return r.next
}

// wanted says whether anybody asks.
func (r *reports) wanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next != nil
}

// take returns the report that a seal is to answer, nil where nobody asks. It is called
// while the cycle that is to be sealed is still the current one: whoever asks later may
// have published into the next.
func (r *reports) take() *report {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.next
	r.next = nil
	return taken
}

// ErrStopped is what a report gets after the last cycle.
var ErrStopped = errors.New("the daemon is stopping: the last report is on its way")

// Stats is what the outside sees of the aggregates.
type Stats struct {
	Drainers    []DrainerStats
	Ages        Ages
	Merged      uint64            // spans of groups that tracers have counted
	Held        uint64            // snapshots in tables that are not sealed
	Origins     int               // in the current interval
	Aggregates  int               // keys in the current interval
	Masked      map[string]uint64 // keys with a mask in the place of a label, by label
	Partitions  routing.Stats
	SketchBytes int       // that tables hold for the bins of their sketches
	Coarsened   uint64    // spans put into a higher bin than their own, see sketch.Memory
	Sealed      uint64    // cycles so far
	LastSeal    time.Time // or the start
}

// DrainerStats is one drainer's part of it.
type DrainerStats struct {
	Aggregated  uint64
	Late, Early uint64
	Ring        ring.Stats
}

// Aggregated is what all drainers have counted, and what was merged.
func (s *Stats) Aggregated() (total uint64) {
	total = s.Merged
	for i := range s.Drainers {
		total += s.Drainers[i].Aggregated
	}
	return total
}

// Stats reads the counters without disturbing those who write them.
func (a *Aggregator) Stats() Stats {
	s := Stats{
		Ages:        newAges(),
		Partitions:  a.balancer.Stats(),
		Sealed:      a.sealed.Load(),
		LastSeal:    a.lastSeal.Load(),
		SketchBytes: a.sketches.Taken(),
		Coarsened:   a.sketches.Coarsened(),
		Masked:      a.Masked(),
	}
	for _, c := range a.cycles.memory {
		if c.merged != nil {
			s.Held += c.merged.held.Load()
		}
	}
	s.Merged = a.merged.Load()
	for i, d := range a.drainers {
		s.Drainers = append(s.Drainers, DrainerStats{
			Aggregated: d.aggregated.Load(), Late: d.late.Load(), Early: d.early.Load(),
			Ring: d.ring.Stats(),
		})
		ring, load := &s.Drainers[i].Ring, &s.Partitions.Drainers[i]
		load.Slots, load.SlotsUsed = ring.Slots, ring.Used
		s.Partitions.Slots += ring.Slots
		s.Partitions.SlotsUsed += ring.Used
		s.Ages.add(&d.ages)
		s.Held += d.tables[0].held.Load() + d.tables[1].held.Load()
	}
	if a.cycles.current.Load() != closedCycle {
		s.Origins, s.Aggregates = a.intervals.Size()
	}
	return s
}
