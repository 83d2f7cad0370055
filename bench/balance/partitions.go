package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/routing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"golang.org/x/sys/unix"
)

// policies are the numbers of partitions that are compared, the adaptive one last.
var policies = []routing.Partitioning{{Fixed: 1}, {PerDrainer: 4}, {Adaptive: routing.DefaultDensity}}

// partitionDrainers is as many as the machine of the peers' figures has cores.
const (
	partitionDrainers = 2
	publishers        = 2
)

// measurePartitions has the policies take turns. Throughput is of drainers that
// burn time, so that they are what limits, as in the comparison; CPU time is what
// a span costs of publisher and drainer together where the real aggregates count,
// and nothing is burnt.
func measurePartitions(out io.Writer, o options) error {
	fmt.Fprintf(out, "\n%d drainers; M items a second of %d steps each, and CPU ns a span with real aggregates; medians\n%12s",
		partitionDrainers, o.work, "aggregates")
	for _, p := range policies {
		fmt.Fprintf(out, "  %21s", p)
	}
	fmt.Fprintln(out)
	verdict := "adaptive vs the best of the others:"
	for _, aggregates := range []int{500, 1000, 2000} {
		results, err := measurePolicies(o, aggregates)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%12d", aggregates)
		for _, r := range results {
			fmt.Fprintf(out, "  %9.2f %8.1f ns", median(slices.Clone(r.perSecond))/1e6, median(slices.Clone(r.cpu)))
		}
		fmt.Fprintln(out)
		adaptive, best := results[len(results)-1], math.Inf(1)
		for _, other := range results[:len(results)-1] {
			best = min(best, median(quotients(adaptive.perSecond, other.perSecond)))
		}
		verdict += fmt.Sprintf("  %d %+.1f%% (noise %.1f%%)", aggregates, percent(best), noise(adaptive.perSecond))
	}
	fmt.Fprintln(out, verdict)
	return nil
}

// contestant is one policy.
type contestant struct {
	engine     *engine
	aggregates *aggregate.Aggregator
	perSecond  []float64 // by turn
	cpu        []float64
}

func newContestant(o options, policy routing.Partitioning, keys int) (*contestant, error) {
	config := aggregate.DefaultConfig()
	config.Drainers, config.Partitions = partitionDrainers, policy
	config.Settle()
	config.Deliver = func(s *aggregate.Sealed) {
		s.Delivery.Resolve(nil)
		s.Release()
	}
	c := &contestant{}
	var err error
	if c.aggregates, err = aggregate.New(config); err != nil {
		return nil, fmt.Errorf("make aggregates: %w", err)
	}
	c.engine, err = newEngine(o, routing.Config{
		Drainers: config.Drainers, Partitions: policy, Interval: interval,
	}, keys, even.hashes(keys))
	if err != nil {
		return nil, err
	}
	c.aggregates.Start()
	return c, nil
}

func (c *contestant) stop() {
	c.engine.stop()
	c.aggregates.Stop()
}

func measurePolicies(o options, keys int) ([]*contestant, error) {
	var contestants []*contestant
	for _, policy := range policies {
		c, err := newContestant(o, policy, keys)
		if err != nil {
			return nil, err
		}
		defer c.stop()
		contestants = append(contestants, c)
	}
	length := o.window / turns
	for w := range turns*o.windows + 1 {
		for _, c := range contestants {
			taken := c.engine.send(length)
			cpu, err := count(c.aggregates, keys, length/turns)
			if err != nil {
				return nil, err
			}
			if w > 0 { // the first turn makes rows and sketches
				c.perSecond, c.cpu = append(c.perSecond, float64(sum(taken))/length.Seconds()), append(c.cpu, cpu)
			}
		}
	}
	return contestants, nil
}

// count publishes for a while, and returns the CPU time a span.
func count(a *aggregate.Aggregator, keys int, length time.Duration) (cpu float64, err error) {
	var stop atomic.Bool
	var publishing sync.WaitGroup
	stats := a.Stats()
	before := stats.Aggregated()
	spent, err := cpuTime()
	if err != nil {
		return 0, err
	}
	for range publishers {
		publishing.Go(func() {
			p := publisher{a: a, reader: a.NewReader(), route: a.NewRoute(), known: make([]registry.Admission, keys)}
			defer p.reader.Close()
			for at := 0; !stop.Load(); at = (at + batchLen) % keys {
				for !p.publish(at) && !stop.Load() {
					time.Sleep(fullPause)
				}
			}
		})
	}
	time.Sleep(length)
	stop.Store(true)
	publishing.Wait()
	now, err := cpuTime()
	stats = a.Stats()
	return float64(now-spent) / float64(max(1, stats.Aggregated()-before)), err
}

// publisher knows the keys of its cycle, as a connection does.
type publisher struct {
	a      *aggregate.Aggregator
	reader *aggregate.Reader
	route  *routing.Route
	cycle  uint64 // number plus one that known is valid in
	known  []registry.Admission
	slots  [partitionDrainers][]aggregate.Slot
}

// publish sends a batch of the keys from one on, or nothing where there is no room.
func (p *publisher) publish(from int) bool {
	cycle := p.reader.Enter()
	defer p.reader.Exit()
	if p.cycle != cycle.Number()+1 {
		p.admit(cycle)
	}
	for drainer := range p.slots {
		p.slots[drainer] = p.slots[drainer][:0]
	}
	p.route.Begin()
	defer p.route.Offered()
	window, now := cycle.Window(), time.Now().UnixNano()
	for i := range batchLen {
		key := p.known[(from+i)%len(p.known)]
		p.route.Note([]uint32{key.Hash})
		to := &p.slots[p.route.Drainer(key.Hash)]
		*to = append(*to, window.Slot(key.ID, uint32(i+1)*1_000_000, now, 0))
	}
	var claims [partitionDrainers]ring.Claim[aggregate.Slot]
	for drainer, slots := range p.slots {
		if len(slots) == 0 {
			continue
		}
		claim, result := p.a.Ring(drainer).Claim(len(slots))
		if result != ring.Claimed {
			for earlier := range drainer {
				if claims[earlier].Len() > 0 {
					claims[earlier].Skip()
				}
			}
			return false
		}
		claims[drainer] = claim
	}
	for drainer, slots := range p.slots {
		for i := range slots {
			*claims[drainer].Slot(i) = slots[i]
		}
		if len(slots) > 0 {
			claims[drainer].Publish()
		}
	}
	return true
}

func (p *publisher) admit(cycle *aggregate.Cycle) {
	origin, _ := cycle.AdmitOrigin(span.Origin{Service: "shop"})
	for i := range p.known {
		p.known[i] = cycle.Admit(origin, &span.Key{Service: "shop", Operation: "op", Resource: fmt.Sprint("GET /", i)})
	}
	p.cycle = cycle.Number() + 1
}

// cpuTime is what all threads of this process have used, kernel included.
func cpuTime() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

func quotients(a, b []float64) []float64 {
	q := make([]float64, len(a))
	for i := range a {
		q[i] = a[i] / b[i]
	}
	return q
}

// noise is half of the middle half's width, in percent of the median.
func noise(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return 50 * (sorted[3*len(sorted)/4] - sorted[len(sorted)/4]) / median(sorted)
}
