package main

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"golang.org/x/sys/cpu"
)

const (
	batchLen  = 64
	ringSlots = 8192
	drainMost = 512
	fullPause = 200 * time.Microsecond // pause of package ingest when it must not drop
)

// engine consists of the daemon's rings and balancer, with drainers that only consume CPU time.
type engine struct {
	options
	balancer *routing.Balancer
	hashes   []uint32
	drainers []*drainer
	running  sync.WaitGroup
}

type drainer struct {
	ring  *ring.Ring[uint64]
	_     cpu.CacheLinePad
	taken atomic.Uint64
	sink  uint64
	_     cpu.CacheLinePad
}

// newEngine starts the drainers. hashes is one period of traffic with the given number of keys.
func newEngine(o options, balancing routing.Config, keys int, hashes []uint32) (*engine, error) {
	e := &engine{options: o, hashes: hashes, balancer: routing.NewBalancer(balancing)}
	for range balancing.Drainers {
		slots, err := ring.New[uint64](ringSlots)
		if err != nil {
			return nil, fmt.Errorf("make ring: %w", err)
		}
		d := &drainer{ring: slots}
		e.drainers = append(e.drainers, d)
		e.running.Go(func() {
			d.ring.Consume(drainMost, func(items []uint64) { d.take(items, o) }, func(ring.Signal) {})
		})
	}
	e.balancer.Start()
	e.balancer.SetKeyCount(keys)
	return e, nil
}

// take processes items. Each step of an item depends on the step before; with options.wait,
// take waits instead.
func (d *drainer) take(items []uint64, o options) {
	if o.wait > 0 {
		time.Sleep(time.Duration(len(items)) * o.wait)
	} else {
		for _, x := range items {
			for range o.work {
				x = x*6364136223846793005 + 1442695040888963407
			}
			d.sink += x
		}
	}
	d.taken.Store(d.taken.Load() + uint64(len(items)))
}

// send runs the producers for length, and returns the number of items that each drainer took
// during that time.
func (e *engine) send(length time.Duration) []uint64 {
	var stop atomic.Bool
	var sending sync.WaitGroup
	before := e.taken()
	for p := range e.producers {
		sending.Go(func() { e.produce(p, &stop) })
	}
	time.Sleep(length)
	taken := e.taken()
	stop.Store(true)
	sending.Wait()
	for _, d := range e.drainers {
		for d.ring.Stats().Used > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	for i := range taken {
		taken[i] -= before[i]
	}
	return taken
}

func (e *engine) taken() (taken []uint64) {
	for _, d := range e.drainers {
		taken = append(taken, d.taken.Load())
	}
	return taken
}

// produce publishes batches, each completely or not at all, and waits while the rings are full.
func (e *engine) produce(producer int, stop *atomic.Bool) {
	route := e.balancer.NewRoute()
	claims := make([]ring.Claim[uint64], len(e.drainers))
	counts := make([]int, len(e.drainers))
	hashes := make([]uint32, batchLen)
	at := producer * len(e.hashes) / e.producers
	for !stop.Load() {
		for i := range hashes {
			hashes[i] = e.hashes[(at+i)%len(e.hashes)]
		}
		for !e.publish(route, claims, counts, hashes, at) && !stop.Load() {
			time.Sleep(fullPause)
		}
		route.CountLoad(hashes)
		at = (at + batchLen) % len(e.hashes)
	}
}

func (e *engine) publish(route *routing.Route, claims []ring.Claim[uint64], counts []int, hashes []uint32,
	at int,
) bool {
	var to [batchLen]uint16
	clear(counts)
	route.Begin()
	for i, hash := range hashes {
		drainer := route.Drainer(hash)
		to[i] = uint16(drainer)
		counts[drainer]++
	}
	for drainer, n := range counts {
		if n == 0 {
			continue
		}
		claim, result := e.drainers[drainer].ring.Claim(n)
		if result != ring.Claimed {
			for earlier := range claims[:drainer] {
				if claims[earlier].Len() > 0 {
					claims[earlier].Skip()
				}
			}
			return false
		}
		claims[drainer] = claim
	}
	clear(counts)
	for i, drainer := range to {
		*claims[drainer].Slot(counts[drainer]) = uint64(at + i)
		counts[drainer]++
	}
	for drainer := range claims {
		if claims[drainer].Len() > 0 {
			claims[drainer].Publish()
		}
	}
	return true
}

func (e *engine) stop() {
	e.balancer.Stop()
	for _, d := range e.drainers {
		d.ring.Send(ring.Signal{Kind: ring.Stop})
	}
	e.running.Wait()
}

// ratio returns the items of the busiest drainer divided by those of the idlest.
func ratio(taken []uint64) float64 {
	return float64(slices.Max(taken)) / float64(max(1, slices.Min(taken)))
}

func sum(taken []uint64) (all uint64) {
	for _, n := range taken {
		all += n
	}
	return all
}
