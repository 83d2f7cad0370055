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

	keyCapacity atomic.Int64 // number of keys for which the current number of partitions is enough
	peakKeys    atomic.Int64 // maximum number of keys so far
	grow        chan struct{}
	stop        chan struct{}
	ended       chan struct{}

	// Used by the balancer's goroutine only.
	lastCounts [MaxPartitions]uint64 // counts of demand at the last rebalancing
}

// NewBalancer returns a balancer that divides keys between drainers, the goroutines that count spans. Initially
// each drainer gets about the same number of partitions, parts of the key space. Start must be called to run
// it.
func NewBalancer(config Config) *Balancer {
	b := &Balancer{
		config: config, grow: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	const initialKeys = 0
	partitions := partitionsFor(config.Drainers, initialKeys)
	evenRouting := newRouting(partitions, config.Drainers)
	b.SetRouting(evenRouting)
	b.publishInitialStats()
	return b
}

// publishInitialStats publishes the statistics before the first interval: no loads and no plan.
func (b *Balancer) publishInitialStats() {
	const evenRatio = 1
	noPlan := unchanged(evenRatio, "no interval has ended yet")
	noLoads := make([]uint64, b.Routing().Partitions())
	stats := Stats{}
	stats.addPlan(&noPlan)
	stats.LastChange = stats.LastPlan
	stats.setLoads(noLoads, b.Routing())
	b.stats.Store(&stats)
}

// Routing returns the current routing. Callers load it once per batch.
func (b *Balancer) Routing() *Routing { return b.routing.Load() }

// SetRouting makes r the current routing. After Start, only the balancer's goroutine may call it.
func (b *Balancer) SetRouting(r *Routing) {
	b.keyCapacity.Store(int64(capacityOf(r.Partitions())))
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
			b.growTo(int(b.peakKeys.Load()))
		case <-ticks:
			b.rebalance()
		}
	}
}

// SetKeyCount tells the balancer the number of different keys in the current interval. If keys are more
// than the current number of partitions is meant for, the balancer's goroutine adds partitions.
// SetKeyCount does not wait for that.
func (b *Balancer) SetKeyCount(keys int) {
	b.raisePeak(int64(keys))
	isEnough := int64(keys) <= b.keyCapacity.Load()
	if isEnough {
		return
	}
	select {
	case b.grow <- struct{}{}:
	default: // a request is pending; it is handled with the highest number of keys so far
	}
}

// raisePeak sets the peak to keys if that is higher.
func (b *Balancer) raisePeak(keys int64) {
	for {
		peak := b.peakKeys.Load()
		if keys <= peak || b.peakKeys.CompareAndSwap(peak, keys) {
			return
		}
	}
}

// growTo divides the partitions into smaller ones if there are too few for the given number of different keys.
// Each key stays with its drainers. growTo never removes partitions, because unused ones cost nothing.
func (b *Balancer) growTo(keys int) {
	current := b.Routing()
	partitions := partitionsFor(b.config.Drainers, keys)
	if partitions > current.Partitions() {
		b.SetRouting(current.Subdivide(partitions))
	}
}

// rebalance reads the load of each partition, a part of the key space, since the last call. It changes
// which drainers own the partitions if that makes the loads of the drainers more even. Then it updates
// the statistics.
func (b *Balancer) rebalance() {
	current := b.Routing()
	loads := b.demand.loadsSince(&b.lastCounts, current.Partitions())
	plan := b.decide(loads, current)
	if plan.changesOwners() {
		b.SetRouting(current.WithOwners(plan.owners))
	}
	b.publishStats(&plan, loads, current)
}

// publishStats adds a plan and the loads of an interval to the statistics that Stats returns. r is the
// routing during the interval.
func (b *Balancer) publishStats(plan *Plan, loads []uint64, r *Routing) {
	stats := *b.stats.Load()
	stats.addPlan(plan)
	stats.setLoads(loads, r)
	b.stats.Store(&stats)
}

// decide returns a plan that assigns the partitions, parts of the key space, to drainers. loads
// contains the number of sampled spans per partition in the last interval. The plan changes nothing if
// there were fewer than minSamples samples per drainer, or if rebalancing is switched off.
func (b *Balancer) decide(loads []uint64, current *Routing) Plan {
	assigned := newAssignment(loads, current)
	samplesPerDrainer := assigned.fairLoad()
	if samplesPerDrainer < minSamples {
		return unchanged(assigned.loadRatio(), whyNoLoad)
	}
	if b.config.Interval == 0 {
		return unchanged(assigned.loadRatio(), "rebalancing is switched off")
	}
	return planRebalancing(loads, current)
}

// busiestShown is the number of partitions in the statistics.
const busiestShown = 10

// Stats describes the distribution of the key space over the drainers. Loads are those of the last
// interval, estimated from a sample.
type Stats struct {
	Policy     string          `json:"policy"` // policy for the number of partitions
	Partitions int             `json:"partitions"`
	Epoch      uint64          `json:"epoch"` // epoch of the routing; increases with each change
	Split      int             `json:"split"`
	LoadRatio  float64         `json:"load_ratio"` // load of the busiest drainer over that of the idlest; 1 if even
	SlotsUsed  int             `json:"slots_used"` // used slots of all rings
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
	Share      float64 `json:"share"`   // share of all spans offered
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

// addPlan stores a plan as the last one, and adds its moves, splits and merges to the totals. If the
// plan changes the owner of a partition, addPlan also stores it as the last change.
func (s *Stats) addPlan(p *Plan) {
	s.LoadRatio = p.OldLoadRatio // measured; p.NewLoadRatio is a forecast
	s.Moves += uint64(p.Moves)
	s.Splits += uint64(p.Splits)
	s.Merges += uint64(p.Merges)
	s.LastPlan = p.PlanStats
	s.LastPlan.At = time.Now()
	if p.changesOwners() {
		s.LastChange = s.LastPlan
	}
}

// setLoads sets the loads of the drainers and of the busiest partitions (parts of the key space). samples contains
// the number of sampled spans of each partition while r was the current routing.
func (s *Stats) setLoads(samples []uint64, r *Routing) {
	assigned := newAssignment(samples, r)
	totalSamples := max(1, assigned.totalLoad()) // not 0, because it is a divisor
	s.Drainers = make([]DrainerLoad, r.drainers)
	for drainer, drainerSamples := range assigned.drainerLoads {
		s.Drainers[drainer].Offered = uint64(drainerSamples * sampleEvery) // estimated number of spans
		s.Drainers[drainer].Share = drainerSamples / totalSamples
	}
	for _, owners := range assigned.owners {
		for _, drainer := range owners {
			s.Drainers[drainer].Partitions++
		}
	}
	s.Busiest = busiest(assigned.partitionLoads(totalSamples))
}

// partitionLoads returns the loads of the partitions with at least one sampled span. total is the sum of their loads.
func (a *assignment) partitionLoads(total float64) (partitions []PartitionLoad) {
	for p, load := range a.loads {
		if load > 0 {
			partitions = append(partitions, PartitionLoad{
				Partition: p, Offered: load * sampleEvery, Share: float64(load) / total,
				Owners: a.owners[p],
			})
		}
	}
	return partitions
}

// busiest returns the partitions with the highest loads, at most busiestShown. The result is not nil.
func busiest(partitions []PartitionLoad) []PartitionLoad {
	slices.SortStableFunc(partitions, func(a, b PartitionLoad) int {
		return cmp.Compare(b.Offered, a.Offered)
	})
	shown := min(busiestShown, len(partitions))
	return append([]PartitionLoad{}, partitions[:shown]...)
}
