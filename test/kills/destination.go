package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// destination is a stand-in for one that statistics go to.
type destination interface {
	flags() []string                  // by which a daemon sends there
	run(context.Context)              // until it ends
	settle(ctx context.Context) error // waits until it has counted what a living daemon holds
	count() counts                    // what it has counted
	close()
}

// newDestination makes the one of that name.
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

// moods are how destinations take requests.
type moods struct {
	arrived chan struct{} // hears of each request
	mu      sync.Mutex
	random  *rand.Rand
	slow    float64
	hangs   bool
	isCalm  bool
}

func newMoods(c scenario) *moods {
	return &moods{
		arrived: make(chan struct{}), random: rand.New(rand.NewPCG(c.seed, 2)),
		slow: c.slow, hangs: c.hangs,
	}
}

// calm has no request refused: a daemon that stops asks once.
func (m *moods) calm(is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isCalm = is
}

// mood is how it takes one.
type mood struct {
	before, after time.Duration // it waits so long before it counts, and before it answers
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
	if m.hangs && !m.isCalm && m.random.IntN(40) == 0 {
		one.after = 11 * time.Second
	}
	one.refuses = m.random.IntN(25) == 0 && !m.isCalm
	return one
}

// notice tells who kills that a request is here.
func (m *moods) notice() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}
