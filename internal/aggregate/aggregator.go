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
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	uatomic "go.uber.org/atomic"
)

// Aggregator counts snapshots into cycles and delivers each sealed cycle.
type Aggregator struct {
	config    Config
	cycles    cycles
	intervals *registry.Intervals
	balancer  *routing.Balancer
	drainers  []*drainer
	sealer    sealer
	settled   settledCycles
	sketches  *sketch.Memory
	sealed    uatomic.Uint64
	merged    atomic.Uint64 // spans of merged groups
	lastSeal  *uatomic.Time
}

// New returns an Aggregator that accepts spans, but does not count them before Start. It allocates all
// memory whose size depends only on the configuration. It returns an error if the configuration is
// invalid.
func New(config Config) (*Aggregator, error) {
	if err := config.Check(); err != nil {
		return nil, err
	}
	a := &Aggregator{
		config: config, lastSeal: uatomic.NewTime(time.Time{}), settled: newSettledCycles(),
		sketches: sketch.NewMemory(config.SketchBytes, config.Grid),
	}
	a.balancer = routing.NewBalancer(routing.Config{
		Drainers: config.Drainers, Interval: config.RebalanceInterval, Ticks: config.RebalanceTicks,
	})
	a.cycles.exited = make(chan struct{}, 1)
	a.cycles.guards = map[*Guard]struct{}{}
	a.cycles.alternating = [2]*Cycle{a.newCycle(), a.newCycle()}
	for i := range config.Drainers {
		d, err := a.newDrainer(i)
		if err != nil {
			return nil, err
		}
		a.drainers = append(a.drainers, d)
	}
	a.sealer = sealer{
		aggregator: a, requests: newFlushRequests(), clears: make(chan struct{}),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	a.intervals = registry.NewIntervals(&a.config.Config)
	first, second := a.cycles.byNumber(0), a.cycles.byNumber(1)
	first.begin(0, time.Now(), a.intervals)
	a.config.Recovery.BeginCycle(0)
	second.released <- struct{}{} // no earlier cycle uses its memory
	return a, nil
}

// newCycle returns the memory of a cycle that has not begun.
func (a *Aggregator) newCycle() *Cycle {
	c := &Cycle{width: a.config.BucketWidth, setKeyCount: a.balancer.SetKeyCount, released: make(chan struct{}, 1)}
	c.objectives.counts = make(slo.Counts, a.config.Objectives)
	for range a.config.Drainers {
		c.tables = append(c.tables, NewTable(a.config.MaxKeys(), a.config.BucketWidth, a.sketches))
	}
	if a.config.Merge {
		c.merged = newMerged(&a.config, a.sketches, &a.merged)
	}
	return c
}

// newDrainer returns the drainer with the given index. A drainer is a goroutine that aggregates spans, which it reads from
// a ring of its own. The caller must start it. newDrainer returns an error if config.RingSlots is invalid.
func (a *Aggregator) newDrainer(index int) (*drainer, error) {
	slots, err := ring.New[Slot](a.config.RingSlots)
	if err != nil {
		return nil, fmt.Errorf("make ring: %w", err)
	}
	d := &drainer{ring: slots, handled: make(chan struct{}, 1), done: make(chan struct{})}
	even, odd := a.cycles.byNumber(0), a.cycles.byNumber(1) // the memory of cycles with even and odd numbers
	d.tables = [2]*Table{even.tables[index], odd.tables[index]}
	return d, nil
}

// Start starts the drainers, the sealer and the balancer, each in a goroutine of its own.
func (a *Aggregator) Start() {
	a.lastSeal.Store(time.Now())
	for _, d := range a.drainers {
		go d.run()
	}
	go a.sealer.run()
	a.balancer.Start()
}

// Stop waits for batches that are being published, exports all spans that are not exported yet, and
// ends all goroutines. Nothing can be published afterwards.
func (a *Aggregator) Stop() {
	a.balancer.Stop()
	close(a.sealer.stop)
	<-a.sealer.done
}

// NewGuard returns a guard for one publisher.
func (a *Aggregator) NewGuard() *Guard { return a.cycles.newGuard() }

// Settled returns the number of the first cycle, one export interval, whose spans are not all delivered or
// given up. It also returns a channel that is closed when this number increases.
func (a *Aggregator) Settled() (firstUnsettled uint64, changed <-chan struct{}) {
	return a.settled.first()
}

// RequestFlush exports all spans published before the call, without waiting for the end of the
// interval. It returns when the export has begun. The caller can wait for the returned deliveries. The
// error is that of ctx if ctx ends first, or ErrStopped if the aggregator stops without another export.
func (a *Aggregator) RequestFlush(ctx context.Context) (Deliveries, error) {
	request := a.sealer.requests.pendingOrNew()
	select {
	case <-request.completed: // the exporters have the spans
		return request.deliveries, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.sealer.done:
		if request.isComplete() { // both channels are closed, and select chose this one
			return request.deliveries, nil
		}
		return nil, ErrStopped
	}
}

// MostCollapsed returns the label with too many values that was replaced in the most keys since the last call, and the
// number of these keys. keys is 0 if no label was replaced.
func (a *Aggregator) MostCollapsed() (label string, keys uint64) { return a.intervals.MostCollapsed() }

// Masked returns, by the name of a label, the number of keys in which placeholders have replaced identifiers in the label.
func (a *Aggregator) Masked() map[string]uint64 { return a.intervals.Masked() }

// NewRoute returns a publisher's view of the assignment of keys to rings.
func (a *Aggregator) NewRoute() *routing.Route { return a.balancer.NewRoute() }

// Drainers returns the number of drainers, which is also the number of rings.
func (a *Aggregator) Drainers() int { return len(a.drainers) }

// RingSlots returns the number of slots per ring.
func (a *Aggregator) RingSlots() int { return a.config.RingSlots }

// Ring returns the ring of a drainer.
func (a *Aggregator) Ring(drainer int) *ring.Ring[Slot] { return a.drainers[drainer].ring }

// Clear discards all spans that are counted, but not exported yet. The daemon calls it while no
// destination accepts statistics. The number of discarded spans is delivered as Sealed.Cleared. After
// Stop, Clear does nothing.
func (a *Aggregator) Clear() {
	select {
	case a.sealer.clears <- struct{}{}:
	case <-a.sealer.done:
	}
}

// Config configures an Aggregator. Every field except RebalanceTicks and Recovery must be set.
type Config struct {
	Drainers          int              // goroutines that count; each has a ring
	RebalanceInterval time.Duration    // interval at which keys are rebalanced between drainers; 0 disables it
	RebalanceTicks    <-chan time.Time // see routing.Config
	RingSlots         int              // slots per ring, a power of two
	registry.Config                    // limits of each interval
	SketchBytes       int              // limit for the bins of all sketches, see sketch.Memory
	Grid              *sketch.Grid     // cells that durations are counted in
	FlushInterval     time.Duration    // maximum length of a cycle
	BucketWidth       time.Duration    // width of a bucket of end times
	Objectives        int              // number of objectives, see Sealed.Objectives
	Merge             bool             // accept groups counted by tracers, see Merged
	Deliver           func(*Sealed)    // receives sealed cycles; must not wait for the network
	Recovery          *recovery.File   // recovery file for the next daemon; nil disables it
}

// Limits of Config.SketchBytes. The lower one is a chunk for every table of a few drainers; the upper
// one is well below the number of pages that an index can refer to.
const (
	minSketchBytes = 1 << 20
	maxSketchBytes = 1 << 30
)

// DefaultConfig returns the defaults of the command line.
func DefaultConfig() Config {
	return Config{
		Drainers: 1, RebalanceInterval: 10 * time.Second, RingSlots: 1 << 16,
		Config: registry.DefaultConfig(), SketchBytes: 16 << 20, Grid: sketch.AgentGrid(),
		FlushInterval: 10 * time.Second, BucketWidth: 10 * time.Second,
	}
}

// Check returns an error for each invalid value.
func (c *Config) Check() (err error) {
	isDisabled := c.RebalanceInterval == 0
	isValid := c.RebalanceInterval >= routing.MinInterval && c.RebalanceInterval <= time.Hour
	if !isDisabled && !isValid {
		err = errors.Join(err, fmt.Errorf("BUG: the rebalancing interval %s is neither 0 nor between %s and "+
			"1h", c.RebalanceInterval, routing.MinInterval))
	}
	if c.Deliver == nil {
		err = errors.Join(err, errors.New("BUG: Deliver is nil"))
	}
	if c.Grid == nil {
		err = errors.Join(err, errors.New("BUG: Grid is nil"))
	}
	return errors.Join(err,
		check.Number("drainers", c.Drainers, 1, 1024),
		check.Size("sketch-bytes", c.SketchBytes, minSketchBytes, maxSketchBytes),
		check.Time("bucket width", c.BucketWidth, 1, math.MaxInt64),
		check.Time("flush-interval", c.FlushInterval, time.Second, c.BucketWidth), // no longer than a bucket
		c.Config.Check(),
	)
}

// Memory returns the maximum memory of each part of the aggregator, with the flag that limits it.
func (c *Config) Memory() []memory.Part {
	slot := int(unsafe.Sizeof(Slot{})) + 8 // 8 bytes for the slot's sequence number
	return []memory.Part{
		{Name: "rings", Bytes: int64(c.Drainers * c.RingSlots * slot), Flag: "ring-slots"},
		{Name: "tables", Bytes: int64(c.TableBytes()), Flag: "max-aggregates"},
		{Name: "sketches", Bytes: int64(c.SketchBytes), Flag: "sketch-bytes"},
		{Name: "labels", Bytes: int64(c.Config.Bytes()), Flag: "label-bytes"},
	}
}

// TableBytes returns the maximum memory of all tables in bytes, without distributions of durations. It
// assumes that every drainer counts every key in every time bucket. Typical traffic takes a sixth of
// this, because one drainer counts all spans of a key, in one time bucket.
func (c *Config) TableBytes() int {
	bytesPerRow := unsafe.Sizeof(row{}) + unsafe.Sizeof(errorPart{}) + unsafe.Sizeof(uint32(0))
	return 2 * c.Drainers * windowBuckets * c.MaxKeys() * int(bytesPerRow)
}

// flushRequests passes requests for an early seal to the sealer. All clients that request the same seal share one
// flushRequest. So a client that stops waiting need not remove it.
type flushRequests struct {
	wake chan struct{} // contains a value if the sealer is to be woken

	mu      sync.Mutex
	pending *flushRequest // nil if there is no request
}

// flushRequest is the result of one seal for all clients that requested it.
type flushRequest struct {
	completed  chan struct{} // closed after deliveries is set
	deliveries Deliveries
}

// complete ends the waiting of the clients for the seal.
func (r *flushRequest) complete(deliveries Deliveries) {
	r.deliveries = deliveries
	close(r.completed)
}

// isComplete reports whether complete was called.
func (r *flushRequest) isComplete() bool {
	select {
	case <-r.completed:
		return true
	default:
		return false
	}
}

func newFlushRequests() flushRequests { return flushRequests{wake: make(chan struct{}, 1)} }

// pendingOrNew returns the pending request, or makes a new one and wakes the sealer. The sealer completes the request
// when it begins the next export.
func (r *flushRequests) pendingOrNew() *flushRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending != nil {
		return r.pending
	}
	r.pending = &flushRequest{completed: make(chan struct{})}
	select {
	case r.wake <- struct{}{}:
	default: // an earlier value will wake the sealer
	}
	return r.pending
}

// isPending reports whether there is a request.
func (r *flushRequests) isPending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending != nil
}

// take removes and returns the pending request, or returns nil if there is none. The sealer calls it before it ends a
// cycle, and completes the request after it has passed this cycle to the exporters.
func (r *flushRequests) take() *flushRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.pending
	r.pending = nil
	return taken
}

// ErrStopped is returned by requests after the last cycle.
var ErrStopped = errors.New("the daemon is stopping, and has already begun its last export")

// Stats is a snapshot of the aggregator's counters.
type Stats struct {
	Drainers []DrainerStats
	Ages     Ages
	Merged   uint64 // spans of groups that tracers have counted
	Pending  uint64 // snapshots in tables that are not sealed

	PendingValues uint64             // values of measures in tables that are not sealed
	Origins       int                // number of origins in the current interval
	Aggregates    int                // keys in the current interval
	Masked        map[string]uint64  // keys with a mask instead of a label, by label
	Overflow      *registry.Overflow // last interval in which a label exceeded its budget; nil if there was none
	Partitions    routing.Stats
	SketchBytes   int       // memory in use for the bins of sketches
	Coarsened     uint64    // spans counted in a higher bin than their own, see sketch.Memory
	Sealed        uint64    // cycles so far
	LastSeal      time.Time // the start time before the first seal
}

// DrainerStats has the counters of one drainer.
type DrainerStats struct {
	Aggregated  uint64
	Values      uint64 // aggregated values of measures, which are not spans
	Late, Early uint64
	Excess      float64 // number of spans that the aggregated ones represent by their weights, minus Aggregated
	Ring        ring.Stats
}

// Aggregated returns the number of snapshots that all drainers have counted, plus the merged spans.
func (s *Stats) Aggregated() (total uint64) {
	total = s.Merged
	for i := range s.Drainers {
		total += s.Drainers[i].Aggregated
	}
	return total
}

// Values returns the number of values of measures that all drainers have counted.
func (s *Stats) Values() (total uint64) {
	for i := range s.Drainers {
		total += s.Drainers[i].Values
	}
	return total
}

// AdjustedCount returns the estimated number of spans before sampling: the sum of the weights of all
// aggregated spans, rounded. A span that a sampler kept with the probability 1/n has the weight n.
func (s *Stats) AdjustedCount() uint64 {
	excess := 0.0 // each span adds its weight - 1
	for i := range s.Drainers {
		excess += s.Drainers[i].Excess
	}
	adjusted := float64(s.Aggregated()) + excess
	return uint64(math.Round(max(adjusted, 0)))
}

// Stats reads all counters, without locking the goroutines that write them.
func (a *Aggregator) Stats() Stats {
	s := Stats{
		Ages:        newAges(),
		Partitions:  a.balancer.Stats(),
		Sealed:      a.sealed.Load(),
		LastSeal:    a.lastSeal.Load(),
		SketchBytes: a.sketches.Taken(),
		Coarsened:   a.sketches.Coarsened(),
		Masked:      a.Masked(),
		Overflow:    a.intervals.Overflow(),
	}
	for _, c := range a.cycles.alternating {
		if c.merged != nil {
			s.Pending += c.merged.pending.Load()
		}
	}
	s.Merged = a.merged.Load()
	for i, d := range a.drainers {
		s.Drainers = append(s.Drainers, DrainerStats{
			Aggregated: d.aggregated.Load(), Values: d.values.Load(), Late: d.late.Load(), Early: d.early.Load(),
			Excess: math.Float64frombits(d.excess.Load()), Ring: d.ring.Stats(),
		})
		ring, load := &s.Drainers[i].Ring, &s.Partitions.Drainers[i]
		load.Slots, load.SlotsUsed = ring.Slots, ring.Used
		s.Partitions.Slots += ring.Slots
		s.Partitions.SlotsUsed += ring.Used
		s.Ages.add(&d.ages)
		s.Pending += d.tables[0].pending.Load() + d.tables[1].pending.Load()
		s.PendingValues += d.tables[0].pendingValues.Load() + d.tables[1].pendingValues.Load()
	}
	if a.cycles.current.Load() != noCycle {
		s.Origins, s.Aggregates = a.intervals.Size()
	}
	return s
}
