package routing

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// minSamples is the number of samples per drainer and interval below which the loads say nothing.
const minSamples = 1024

const (
	// MinInterval is the shortest interval whose loads are meaningful.
	MinInterval = 100 * time.Millisecond
	// statsInterval is the interval at which the loads are read if rebalancing is switched off.
	statsInterval = 10 * time.Second
)

// Config is what a Balancer needs to know.
type Config struct {
	Drainers int
	Interval time.Duration // between two looks at the loads; 0: partitions grow, but never move
	// Looks says when to look instead of each Interval, where a test decides that. Else it
	// is nil.
	Looks <-chan time.Time
}

// Balancer owns the current routing: how many partitions there are, and who owns which.
// Its goroutine alone writes it. It knows no drainer and no ring, so a saturated drainer
// cannot hold it up.
type Balancer struct {
	config  Config
	routing atomic.Pointer[Routing]
	demand  demand
	stats   atomic.Pointer[Stats]

	capacity atomic.Int64 // live aggregates for which the partitions are enough
	peak     atomic.Int64 // most live aggregates so far
	grow     chan struct{}
	stop     chan struct{}
	ended    chan struct{}

	// Used by the balancer's goroutine only.
	seen  [MaxPartitions]uint64 // demand at the last look
	known Stats                 // statistics to publish after each interval
}

// NewBalancer returns a balancer with a first routing. Start runs it.
func NewBalancer(config Config) *Balancer {
	b := &Balancer{
		config: config, grow: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	b.Install(newRouting(partitionsFor(config.Drainers, 0), config.Drainers))
	none := keep(1, "no look at the loads yet")
	b.known.addPlan(&none)
	b.known.LastChange = b.known.LastPlan
	b.publish(make([]uint64, b.Routing().Partitions()), b.Routing())
	return b
}

// Routing is the current map from partition to drainer. Load it once a batch.
func (b *Balancer) Routing() *Routing { return b.routing.Load() }

// Install makes a routing the current one. The balancer's own goroutine calls it, or
// whoever owns a balancer that was not started.
func (b *Balancer) Install(r *Routing) {
	b.capacity.Store(int64(capacityOf(r.Partitions())))
	b.routing.Store(r)
}

// Stats is what the balancer knows; it knows nothing of rings.
func (b *Balancer) Stats() Stats {
	s := *b.stats.Load()
	routing := b.Routing()
	s.Policy = policy
	s.Partitions, s.Epoch, s.Spread = routing.Partitions(), routing.epoch, len(routing.spread)
	s.Drainers = slices.Clone(s.Drainers)
	return s
}

// Start runs the balancer's goroutine.
func (b *Balancer) Start() { go b.run() }

// Stop ends it. The last routing stays.
func (b *Balancer) Stop() {
	close(b.stop)
	<-b.ended
}

func (b *Balancer) run() {
	defer close(b.ended)
	looks := b.config.Looks
	if looks == nil {
		ticker := time.NewTicker(cmp.Or(b.config.Interval, statsInterval))
		defer ticker.Stop()
		looks = ticker.C
	}
	for {
		select {
		case <-b.stop:
			return
		case <-b.grow:
			b.growTo(int(b.peak.Load()))
		case <-looks:
			b.level()
		}
	}
}

// SetLive says how many aggregates the current interval has. It is called at each admission;
// mostly it costs one comparison.
func (b *Balancer) SetLive(aggregates int) {
	for peak := b.peak.Load(); int64(aggregates) > peak; peak = b.peak.Load() {
		if b.peak.CompareAndSwap(peak, int64(aggregates)) {
			break
		}
	}
	if int64(aggregates) <= b.capacity.Load() {
		return
	}
	select {
	case b.grow <- struct{}{}:
	default: // a token is there already, and the peak will be read
	}
}

// growTo makes as many partitions as so many aggregates should have. A finer routing moves no
// key; it lets the next plan move less at a time. The partitions never become fewer again:
// partitions that are too many cost nothing.
func (b *Balancer) growTo(aggregates int) {
	now := b.Routing()
	partitions := partitionsFor(b.config.Drainers, aggregates)
	if partitions <= now.Partitions() {
		return
	}
	b.Install(now.Grown(partitions))
}

// level reads what was offered to each partition since the last time, and levels the
// drainers if they need it.
func (b *Balancer) level() {
	now := b.Routing()
	loads := b.demand.since(&b.seen, now.Partitions())
	plan := b.decide(loads, now)
	if plan.owners != nil {
		b.Install(now.Next(plan.owners))
	}
	b.known.addPlan(&plan)
	b.publish(loads, now)
}

// publish makes the statistics of an interval those that Stats returns.
func (b *Balancer) publish(loads []uint64, r *Routing) {
	b.known.setLoads(loads, r)
	shown := b.known
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

// busiestShown is how many partitions the statistics name.
const busiestShown = 10

// Stats is how the key space is shared among the drainers. Loads are
// those of the last interval that the balancer looked at, estimated from a sample.
type Stats struct {
	Policy     string          `json:"policy"` // how the number of partitions follows the aggregates
	Partitions int             `json:"partitions"`
	Epoch      uint64          `json:"epoch"` // of the routing; it rises with each change
	Spread     int             `json:"spread"`
	LoadRatio  float64         `json:"load_ratio"` // busiest drainer over idlest, 1 where all are even
	SlotsUsed  int             `json:"slots_used"` // of all rings
	Slots      int             `json:"slots"`
	Drainers   []DrainerLoad   `json:"drainers"`
	Busiest    []PartitionLoad `json:"busiest"`

	// Since the start.
	Moves   uint64 `json:"moves"`   // partitions that got another owner
	Spreads uint64 `json:"spreads"` // partitions that got more owners
	Gathers uint64 `json:"gathers"` // spread partitions that got one owner again

	LastPlan   PlanStats `json:"last_plan"`   // at the last look at the loads
	LastChange PlanStats `json:"last_change"` // the last plan that moved, spread or gathered something
}

// DrainerLoad is one drainer's part of what was offered.
type DrainerLoad struct {
	Offered    uint64  `json:"offered"` // spans, about
	Share      float64 `json:"share"`   // of all spans offered
	Partitions int     `json:"partitions"`
	SlotsUsed  int     `json:"slots_used"`
	Slots      int     `json:"slots"`
}

// PartitionLoad is one partition's part of what was offered.
type PartitionLoad struct {
	Partition int      `json:"partition"`
	Offered   uint64   `json:"offered"`
	Share     float64  `json:"share"`
	Owners    []uint16 `json:"owners"` // drainers; several where it is spread
}

func (s *Stats) addPlan(p *Plan) {
	s.LoadRatio = p.Before
	s.Moves += uint64(p.Moves)
	s.Spreads += uint64(p.Spreads)
	s.Gathers += uint64(p.Gathers)
	s.LastPlan = p.PlanStats
	s.LastPlan.At = time.Now()
	if p.owners != nil {
		s.LastChange = s.LastPlan
	}
}

// setLoads replaces the loads by those of an interval, as the routing in force during it
// shared them out.
func (s *Stats) setLoads(loads []uint64, r *Routing) {
	assigned := newAssignment(loads, r)
	all := max(1, assigned.fair()*float64(r.drainers))
	s.Drainers = make([]DrainerLoad, r.drainers)
	for drainer, load := range assigned.drained {
		s.Drainers[drainer].Offered, s.Drainers[drainer].Share = uint64(load*sampleEvery), load/all
	}
	s.Busiest = []PartitionLoad{}
	for p, load := range loads {
		for _, drainer := range assigned.owners[p] {
			s.Drainers[drainer].Partitions++
		}
		if load > 0 {
			s.Busiest = append(s.Busiest, PartitionLoad{
				p, load * sampleEvery, float64(load) / all,
				assigned.owners[p],
			})
		}
	}
	slices.SortStableFunc(s.Busiest, func(a, b PartitionLoad) int {
		return cmp.Compare(b.Offered, a.Offered)
	})
	s.Busiest = slices.Clone(s.Busiest[:min(busiestShown, len(s.Busiest))])
}
