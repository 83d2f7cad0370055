package routing

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// minSamples is the number of samples per drainer below which the loads of an interval are too
// inaccurate for a plan.
const minSamples = 1024

const (
	// MinInterval is the shortest interval whose loads are meaningful.
	MinInterval = 100 * time.Millisecond
	// statsInterval is the interval at which the loads are read if rebalancing is switched off.
	statsInterval = 10 * time.Second
)

// Config configures a Balancer.
type Config struct {
	Drainers int
	Interval time.Duration // rebalancing interval; 0: partitions grow, but do not move
	// Ticks triggers rebalancing instead of Interval, for tests.
	Ticks <-chan time.Time
}

// Balancer owns the current routing: the number of partitions and their owners. Only its goroutine
// changes the routing. It does not access drainers or rings, so a saturated drainer cannot block
// it.
type Balancer struct {
	config  Config
	routing atomic.Pointer[Routing]
	demand  demand
	stats   atomic.Pointer[Stats]

	capacity atomic.Int64 // number of live aggregates for which the partitions are enough
	peak     atomic.Int64 // maximum number of live aggregates so far
	grow     chan struct{}
	stop     chan struct{}
	ended    chan struct{}

	// Used by the balancer's goroutine only.
	seen      [MaxPartitions]uint64 // demand at the last rebalancing
	published Stats                 // statistics, published after each interval
}

// NewBalancer returns a balancer with an initial routing. Start runs it.
func NewBalancer(config Config) *Balancer {
	b := &Balancer{
		config: config, grow: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	b.Install(newRouting(partitionsFor(config.Drainers, 0), config.Drainers))
	none := keep(1, "no interval has ended yet")
	b.published.addPlan(&none)
	b.published.LastChange = b.published.LastPlan
	b.publish(make([]uint64, b.Routing().Partitions()), b.Routing())
	return b
}

// Routing returns the current routing. Callers load it once per batch.
func (b *Balancer) Routing() *Routing { return b.routing.Load() }

// Install makes r the current routing. Only the balancer's goroutine may call it, or the owner of a
// balancer that was not started.
func (b *Balancer) Install(r *Routing) {
	b.capacity.Store(int64(capacityOf(r.Partitions())))
	b.routing.Store(r)
}

// Stats returns the statistics of the last interval, without those of rings.
func (b *Balancer) Stats() Stats {
	s := *b.stats.Load()
	routing := b.Routing()
	s.Policy = policy
	s.Partitions, s.Epoch, s.Split = routing.Partitions(), routing.epoch, len(routing.splitOwners)
	s.Drainers = slices.Clone(s.Drainers)
	return s
}

// Start starts the balancer's goroutine.
func (b *Balancer) Start() { go b.run() }

// Stop stops the goroutine. The last routing stays current.
func (b *Balancer) Stop() {
	close(b.stop)
	<-b.ended
}

// run adds partitions on request, and rebalances at each tick, until Stop.
func (b *Balancer) run() {
	defer close(b.ended)
	ticks := b.config.Ticks
	if ticks == nil {
		ticker := time.NewTicker(cmp.Or(b.config.Interval, statsInterval))
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		select {
		case <-b.stop:
			return
		case <-b.grow:
			b.growTo(int(b.peak.Load()))
		case <-ticks:
			b.rebalance()
		}
	}
}

// SetLive sets the number of aggregates in the current interval, and requests more partitions if
// necessary. It is called for each admission, and usually costs one comparison.
func (b *Balancer) SetLive(aggregates int) {
	live := int64(aggregates)
	for peak := b.peak.Load(); live > peak; peak = b.peak.Load() {
		if b.peak.CompareAndSwap(peak, live) {
			break
		}
	}
	if live <= b.capacity.Load() {
		return
	}
	select {
	case b.grow <- struct{}{}:
	default: // there is a token already; its receiver reads the peak
	}
}

// growTo increases the number of partitions, if the given number of aggregates requires more. This
// moves no key, but lets the next plan move smaller parts of the key space. The number of partitions
// never decreases, because superfluous ones cost nothing.
func (b *Balancer) growTo(aggregates int) {
	now := b.Routing()
	partitions := partitionsFor(b.config.Drainers, aggregates)
	if partitions <= now.Partitions() {
		return
	}
	b.Install(now.Subdivide(partitions))
}

// rebalance reads the demand since the last call, and changes the routing if this makes the loads of
// the drainers more even.
func (b *Balancer) rebalance() {
	now := b.Routing()
	loads := b.demand.since(&b.seen, now.Partitions())
	plan := b.decide(loads, now)
	if plan.owners != nil {
		b.Install(now.Next(plan.owners))
	}
	b.published.addPlan(&plan)
	b.publish(loads, now)
}

// publish publishes the statistics of an interval.
func (b *Balancer) publish(loads []uint64, r *Routing) {
	b.published.setLoads(loads, r)
	shown := b.published
	b.stats.Store(&shown)
}

// decide returns the plan for the loads of one interval.
func (b *Balancer) decide(loads []uint64, now *Routing) Plan {
	assigned := newAssignment(loads, now)
	switch {
	case assigned.fair() < minSamples:
		return keep(assigned.ratio(), whyNoLoad)
	case b.config.Interval == 0:
		return keep(assigned.ratio(), "rebalancing is switched off")
	}
	return plan(loads, now)
}

// busiestShown is the number of partitions in the statistics.
const busiestShown = 10

// Stats describes the distribution of the key space over the drainers. Loads are those of the last
// interval, estimated from a sample.
type Stats struct {
	Policy     string          `json:"policy"` // how the number of partitions is chosen
	Partitions int             `json:"partitions"`
	Epoch      uint64          `json:"epoch"` // of the routing; increases with each change
	Split      int             `json:"split"`
	LoadRatio  float64         `json:"load_ratio"` // load of the busiest drainer over that of the idlest; 1 if even
	SlotsUsed  int             `json:"slots_used"` // of all rings
	Slots      int             `json:"slots"`
	Drainers   []DrainerLoad   `json:"drainers"`
	Busiest    []PartitionLoad `json:"busiest"`

	// Since the start.
	Moves  uint64 `json:"moves"`  // partitions that got another owner
	Splits uint64 `json:"splits"` // partitions that got more owners
	Merges uint64 `json:"merges"` // split partitions that got one owner again

	LastPlan   PlanStats `json:"last_plan"`   // plan of the last interval
	LastChange PlanStats `json:"last_change"` // last plan that moved, split or merged a partition
}

// DrainerLoad is the load of one drainer.
type DrainerLoad struct {
	Offered    uint64  `json:"offered"` // spans, estimated
	Share      float64 `json:"share"`   // of all spans offered
	Partitions int     `json:"partitions"`
	SlotsUsed  int     `json:"slots_used"`
	Slots      int     `json:"slots"`
}

// PartitionLoad is the load of one partition.
type PartitionLoad struct {
	Partition int      `json:"partition"`
	Offered   uint64   `json:"offered"`
	Share     float64  `json:"share"`
	Owners    []uint16 `json:"owners"` // drainers; several if it is split
}

// addPlan adds the result of a plan.
func (s *Stats) addPlan(p *Plan) {
	s.LoadRatio = p.Before
	s.Moves += uint64(p.Moves)
	s.Splits += uint64(p.Splits)
	s.Merges += uint64(p.Merges)
	s.LastPlan = p.PlanStats
	s.LastPlan.At = time.Now()
	if p.owners != nil {
		s.LastChange = s.LastPlan
	}
}

// setLoads sets the loads of an interval, during which r was the routing.
func (s *Stats) setLoads(loads []uint64, r *Routing) {
	assigned := newAssignment(loads, r)
	total := max(1, assigned.fair()*float64(r.drainers))
	s.Drainers = make([]DrainerLoad, r.drainers)
	for drainer, load := range assigned.drained {
		s.Drainers[drainer].Offered, s.Drainers[drainer].Share = uint64(load*sampleEvery), load/total
	}
	s.Busiest = []PartitionLoad{}
	for p, load := range loads {
		for _, drainer := range assigned.owners[p] {
			s.Drainers[drainer].Partitions++
		}
		if load > 0 {
			s.Busiest = append(s.Busiest, PartitionLoad{
				p, load * sampleEvery, float64(load) / total,
				assigned.owners[p],
			})
		}
	}
	slices.SortStableFunc(s.Busiest, func(a, b PartitionLoad) int {
		return cmp.Compare(b.Offered, a.Offered)
	})
	s.Busiest = slices.Clone(s.Busiest[:min(busiestShown, len(s.Busiest))])
}
