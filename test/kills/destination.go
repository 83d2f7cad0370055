package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// destination is a fake backend for statistics.
type destination interface {
	flags() []string                  // flags that make a daemon export to it
	run(context.Context)              // runs until the context is done
	settle(ctx context.Context) error // waits until it has counted the spans that a running daemon holds
	count() counts                    // returns the counted spans
	close()
}

// newDestination creates the destination with the given name.
func newDestination(name string, e *episode) (destination, error) {
	switch name {
	case "agent":
		return newAgent(e.faults)
	case "delta", "cumulative":
		return newOTLPBackend(name, e.faults)
	case "prometheus":
		return &scraper{daemon: e.daemon, faults: e.faults, lives: map[int]scrape{}}, nil
	}
	return nil, fmt.Errorf("find destination: %q is unknown; use agent, delta, cumulative or prometheus", name)
}

// faults determines how destinations treat requests.
type faults struct {
	arrived   chan struct{} // receives a value per request
	mu        sync.Mutex
	random    *rand.Rand
	slow      float64
	hangs     bool
	suspended int // number of daemons that are shutting down
}

func newFaults(c scenario) *faults {
	return &faults{
		arrived: make(chan struct{}), random: rand.New(rand.NewPCG(c.seed, 2)),
		slow: c.slow, hangs: c.hangs,
	}
}

// suspend makes destinations accept all requests while a daemon shuts down, because the daemon tries
// only once. Each call with true needs one with false.
func (f *faults) suspend(isSuspended bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if isSuspended {
		f.suspended++
	} else {
		f.suspended--
	}
}

// fault determines how a destination treats one request.
type fault struct {
	countDelay, responseDelay time.Duration // delays before counting and before responding
	rejects                   bool
}

func (f *faults) draw() (drawn fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wait := func() time.Duration {
		if f.random.Float64() >= f.slow {
			return 0
		}
		return time.Duration(f.random.Int64N(int64(300 * time.Millisecond)))
	}
	drawn.countDelay, drawn.responseDelay = wait(), wait()
	if f.hangs && f.suspended == 0 && f.random.IntN(40) == 0 {
		drawn.responseDelay = 11 * time.Second
	}
	drawn.rejects = f.random.IntN(25) == 0 && f.suspended == 0
	return drawn
}

// notifyArrival notifies the goroutine that kills daemons that a request has arrived.
func (f *faults) notifyArrival() {
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}
