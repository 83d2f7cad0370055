package routing

import (
	"sync/atomic"
	"time"
)

// How sure the balancer is before it acts. An unevenness that stands out is acted
// on at once, a slight one when it lasts; a spread partition is gathered when it
// has been clearly below a fair share for as long. So noise moves nothing.
const (
	standsOut = 1.4  // load ratio
	lasting   = 3    // intervals
	cool      = 0.75 // of a drainer's fair share
	evidence  = 1024 // noted spans a drainer and interval; fewer are no load to speak of
)

// gatheredAtOnce is of how many partitions it is tried at one look at the loads: each
// costs a look at all of them. Where partitions were doubled, thousands may be spread.
const gatheredAtOnce = 128

// MinInterval is the shortest interval whose loads say something.
const MinInterval = 100 * time.Millisecond

// unlevelled is how often the loads are looked at where that moves nothing.
const unlevelled = 10 * time.Second

// unneeded is how long partitions must have been too many before there are fewer.
const unneeded = time.Hour

// Config is what a Balancer needs to know.
type Config struct {
	Drainers   int
	Partitions Partitioning
	Interval   time.Duration // between two looks at the loads; 0: partitions grow, but never move
}

// Balancer owns the routing: how many partitions there are, and who owns which.
// One goroutine of its own writes it. It knows no drainer and no ring, so there
// is nothing that it could wait for, and nothing of it that a saturated drainer
// could hold up; nobody waits for it either.
type Balancer struct {
	config  Config
	routing atomic.Pointer[Routing]
	demand  demand
	stats   atomic.Pointer[Stats]

	room  atomic.Int64 // live aggregates for which the partitions are enough
	peak  atomic.Int64 // most live aggregates since it was last looked at
	grow  chan struct{}
	stop  chan struct{}
	ended chan struct{}

	// The goroutine's own.
	seen      [MaxPartitions]uint64
	unevenFor int         // intervals of slight unevenness
	reached   float64     // load ratio, as the last plan made it
	meanwhile []uint64    // what was asked of each partition in them
	coolFor   map[int]int // by spread partition, intervals
	resizedAt time.Time
	known     Stats // what is published after each look
}

// NewBalancer makes the first routing.
func NewBalancer(config Config) *Balancer {
	b := &Balancer{
		config: config, coolFor: map[int]int{}, reached: 1,
		grow: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	b.Install(newRouting(config.Partitions.Count(config.Drainers, 0), config.Drainers))
	b.known.note(&Plan{Before: 1, After: 1, Why: "no look at the loads yet"})
	b.known.LastChange = b.known.LastPlan
	b.publish(make([]uint64, b.Routing().Partitions()), b.Routing())
	return b
}

// Routing is the current map from partition to drainer. Load it once a batch.
func (b *Balancer) Routing() *Routing { return b.routing.Load() }

// Install makes a routing the current one. The balancer's own goroutine calls it, or
// whoever owns a balancer that was not started.
func (b *Balancer) Install(r *Routing) {
	b.room.Store(int64(b.config.Partitions.room(b.config.Drainers, r.Partitions())))
	b.routing.Store(r)
}

// Start runs the balancer's goroutine.
func (b *Balancer) Start() {
	b.resizedAt = time.Now()
	go b.run()
}

// Stop ends it. The last routing stays.
func (b *Balancer) Stop() {
	close(b.stop)
	<-b.ended
}

func (b *Balancer) run() {
	defer close(b.ended)
	interval := b.config.Interval
	if interval == 0 {
		interval = unlevelled
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-b.grow:
			b.growTo(int(b.peak.Load()))
		case now := <-ticker.C:
			b.turn()
			b.shrink(now)
		}
	}
}

// Live says how many aggregates the current interval has. It is called by whoever
// admitted the last of them; mostly it is one comparison.
func (b *Balancer) Live(aggregates int) {
	for peak := b.peak.Load(); int64(aggregates) > peak; peak = b.peak.Load() {
		if b.peak.CompareAndSwap(peak, int64(aggregates)) {
			break
		}
	}
	if int64(aggregates) <= b.room.Load() {
		return
	}
	select {
	case b.grow <- struct{}{}:
	default: // it has been told already, and will see the peak
	}
}

// growTo makes as many partitions as so many aggregates should have. That moves
// no key: it only lets the next plan move less at a time.
func (b *Balancer) growTo(aggregates int) {
	now := b.Routing()
	partitions := b.config.Partitions.Count(b.config.Drainers, aggregates)
	if partitions > now.Partitions() {
		b.resize(now.Resized(partitions))
	}
}

// shrink makes fewer partitions where an hour needed fewer.
func (b *Balancer) shrink(now time.Time) {
	if now.Sub(b.resizedAt) < unneeded {
		return
	}
	partitions := b.config.Partitions.Count(b.config.Drainers, int(b.peak.Swap(0)))
	b.resizedAt = now
	if current := b.Routing(); partitions < current.Partitions() {
		b.resize(current.Resized(partitions))
	}
}

func (b *Balancer) resize(to *Routing) {
	clear(b.coolFor) // partitions have other numbers
	b.reached = 1    // and can be levelled otherwise
	b.resizedAt = time.Now()
	b.Install(to)
}

// turn looks at what was asked of each partition since the last one, and levels
// the drainers if they need it.
func (b *Balancer) turn() {
	now := b.Routing()
	loads := b.demand.since(&b.seen, now.Partitions())
	plan := b.decide(loads, now)
	if plan.owners != nil {
		b.reached = plan.After
		b.Install(now.Next(plan.owners))
	}
	b.known.note(&plan)
	b.publish(loads, now)
}

// publish makes the statistics of an interval those that are shown.
func (b *Balancer) publish(loads []uint64, r *Routing) {
	b.known.weigh(loads, r)
	shown := b.known
	b.stats.Store(&shown)
}

// decide says what to do about the loads of one interval. It does the waiting
// for a second opinion that plan, which has no memory, can't.
func (b *Balancer) decide(loads []uint64, now *Routing) Plan {
	layout := newLayout(loads, now)
	ratio, fair := layout.ratio(), layout.fair()
	stay := Plan{Before: ratio, After: ratio}
	if fair < evidence {
		b.unevenFor = 0
		stay.Why = whyNoLoad
		return stay
	}
	cooled := b.cooled(loads, now, fair)
	if b.config.Interval == 0 {
		stay.Why = "levelling is switched off"
		return stay
	}
	if ratio < uneven {
		b.unevenFor = 0
		cooled = cooled[:min(len(cooled), gatheredAtOnce)]
		for _, p := range cooled {
			delete(b.coolFor, p) // one that can't be gathered lets others try first
		}
		return gather(loads, now, cooled)
	}
	if ratio >= standsOut {
		b.unevenFor = 0
		return plan(loads, now)
	}
	if b.unevenFor == 0 || len(b.meanwhile) != len(loads) {
		b.unevenFor, b.meanwhile = 0, make([]uint64, len(loads))
	}
	for p, load := range loads {
		b.meanwhile[p] += load
	}
	if b.unevenFor++; b.unevenFor < lasting {
		stay.Why = "uneven, but only a little and not for long"
		return stay
	}
	b.unevenFor = 0
	if newLayout(b.meanwhile, now).ratio() < uneven*b.reached {
		stay.Why = "uneven, but little more than the last plan left it"
		return stay
	}
	return plan(b.meanwhile, now)
}

// cooled are the spread partitions that have been cool for some intervals.
func (b *Balancer) cooled(loads []uint64, now *Routing, fair float64) (cooled []int) {
	for p, load := range loads {
		if !now.isSpread(p) || float64(load) >= cool*fair {
			delete(b.coolFor, p)
			continue
		}
		if b.coolFor[p]++; b.coolFor[p] >= lasting {
			cooled = append(cooled, p)
		}
	}
	return cooled
}
