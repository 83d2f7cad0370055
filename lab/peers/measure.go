package main

import (
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// sample is the cost per span in one round.
type sample struct{ cpu, allocs float64 }

// system is an implementation that counts spans. A library counts in this process; a daemon is
// measured by a separate program.
type system struct {
	name    string
	prepare func(spans []workload.Snapshot) (count func(), err error)
	measure func(name string, least time.Duration) (sample, error)
}

// countFor creates a library's counter and runs it for at least the given duration. A warm
// system has counted the spans once before the measurement, like a daemon that has been running
// for a while.
func (s *system) countFor(name string, spans []workload.Snapshot, least time.Duration) (sample, error) {
	count, err := s.prepare(spans)
	if err != nil {
		return sample{}, err
	}
	isNew := spans[0].Index < 0
	if !isNew {
		count()
	}
	runtime.GC() // collect the garbage of the previous system
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
