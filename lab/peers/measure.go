package main

import (
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// sample is the cost of one span in one round.
type sample struct{ cpu, allocs float64 }

// system is a way to count spans. A library counts in this process; a daemon is
// measured by a program that says what it found.
type system struct {
	name    string
	prepare func(spans []workload.Snapshot) (count func(), err error)
	measure func(name string, least time.Duration) (sample, error)
}

// countFor prepares a library afresh and lets it count until the time is over.
// The spans of a warm system are known to it already: it has counted them once
// before, as a daemon has that runs for longer than a moment.
func (s *system) countFor(name string, spans []workload.Snapshot, least time.Duration) (sample, error) {
	count, err := s.prepare(spans)
	if err != nil {
		return sample{}, err
	}
	isNew := spans[0].Index < 0
	if !isNew {
		count()
	}
	runtime.GC() // the garbage of the one before is not this one's
	counted := 0
	cost, err := measure.Of(func() error {
		for begun := time.Now(); counted == 0 || !isNew && time.Since(begun) < least; {
			count()
			counted += len(spans)
		}
		return nil
	})
	return sample{
		cpu:    float64(cost.CPU) / float64(counted),
		allocs: float64(cost.Allocs) / float64(counted),
	}, err
}
