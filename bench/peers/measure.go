package main

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spanstatsd/spanstatsd/internal/workload"
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

// cpuTime is what all threads of this process have used, kernel included.
func cpuTime() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
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
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	counted := 0
	for begun := time.Now(); counted == 0 || !isNew && time.Since(begun) < least; {
		count()
		counted += len(spans)
	}
	now, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	runtime.ReadMemStats(&after)
	return sample{
		cpu:    float64(now-spent) / float64(counted),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(counted),
	}, nil
}
