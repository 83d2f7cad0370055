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
		return newAgent(e.moods)
	case "delta", "cumulative":
		return newReceiver(name, e.moods)
	case "prometheus":
		return &scraper{daemon: e.daemon, moods: e.moods, lives: map[int]scrape{}}, nil
	}
	return nil, fmt.Errorf("no destination is called %q: choose agent, delta, cumulative, prometheus", name)
}

// moods determines how destinations treat requests.
type moods struct {
	arrived chan struct{} // receives a value per request
	mu      sync.Mutex
	random  *rand.Rand
	slow    float64
	hangs   bool
	calming int // number of daemons that shut down
}

func newMoods(c scenario) *moods {
	return &moods{
		arrived: make(chan struct{}), random: rand.New(rand.NewPCG(c.seed, 2)),
		slow: c.slow, hangs: c.hangs,
	}
}

// calm makes destinations accept all requests while a daemon shuts down, because it tries only once. Each
// call with true needs one with false.
func (m *moods) calm(isCalm bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if isCalm {
		m.calming++
	} else {
		m.calming--
	}
}

// mood determines how a destination treats one request.
type mood struct {
	before, after time.Duration // delays before counting and before responding
	refuses       bool
}

func (m *moods) draw() (one mood) {
	m.mu.Lock()
	defer m.mu.Unlock()
	wait := func() time.Duration {
		if m.random.Float64() >= m.slow {
			return 0
		}
		return time.Duration(m.random.Int64N(int64(300 * time.Millisecond)))
	}
	one.before, one.after = wait(), wait()
	if m.hangs && m.calming == 0 && m.random.IntN(40) == 0 {
		one.after = 11 * time.Second
	}
	one.refuses = m.random.IntN(25) == 0 && m.calming == 0
	return one
}

// notice tells the killing goroutine that a request has arrived.
func (m *moods) notice() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}
