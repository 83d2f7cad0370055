// Package measure provides what all measurements need, those of the command line and the
// comparisons alike: CPU time and memory of a process according to the kernel, the cost of a
// function in this process, and the median of samples.
//
// It keeps no state between calls, so any goroutine may measure. But the cost is that of the
// complete process, so only one function can be measured at a time.
package measure

import (
	"runtime"
	"slices"
	"time"
)

// Cost is the cost of a function in this process, over all threads, including kernel time and
// garbage collection.
type Cost struct {
	CPU, Wall time.Duration
	Allocs    uint64
}

// Of runs work and returns its cost.
func Of(work func() error) (Cost, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, err := OwnCPU()
	if err != nil {
		return Cost{}, err
	}
	start := time.Now()
	if err := work(); err != nil {
		return Cost{}, err
	}
	wall := time.Since(start)
	now, err := OwnCPU()
	runtime.ReadMemStats(&after)
	return Cost{CPU: now - spent, Wall: wall, Allocs: after.Mallocs - before.Mallocs}, err
}

// nanoseconds, and a number
type Each struct{ CPU, Allocs float64 } // nanoseconds, and a number

// Each returns the cost per unit, for a number of units.
func (c Cost) Each(units uint64) Each {
	return Each{CPU: float64(c.CPU) / float64(units), Allocs: float64(c.Allocs) / float64(units)}
}

// Median returns the median of a figure over the samples, or 0 if there are no samples.
func Median[T any](samples []T, figure func(T) float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	figures := make([]float64, len(samples))
	for i, s := range samples {
		figures[i] = figure(s)
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}
