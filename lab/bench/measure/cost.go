// Package measure is what every measurement needs, that behind the command line and the
// comparisons in bench/: the processor time and the memory of a process by the kernel's
// account, what a stretch of this process cost, and the median of figures.
//
// Nothing is kept between two calls, so any goroutine may measure; but a cost is that of
// the whole process, so one stretch is measured at a time.
package measure

import (
	"runtime"
	"slices"
	"time"
)

// Cost is what a stretch of this process took: of all its threads, the kernel's part and
// the collector's included.
type Cost struct {
	CPU, Wall time.Duration
	Allocs    uint64
}

// Of runs work and says what it cost.
func Of(work func() error) (Cost, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	spent, err := OwnCPU()
	if err != nil {
		return Cost{}, err
	}
	begun := time.Now()
	if err := work(); err != nil {
		return Cost{}, err
	}
	wall := time.Since(begun)
	now, err := OwnCPU()
	runtime.ReadMemStats(&after)
	return Cost{CPU: now - spent, Wall: wall, Allocs: after.Mallocs - before.Mallocs}, err
}

// Each is a cost by the thing that was done.
type Each struct{ CPU, Allocs float64 } // nanoseconds, and a number

// Each is the cost of one of so many.
func (c Cost) Each(of uint64) Each {
	return Each{CPU: float64(c.CPU) / float64(of), Allocs: float64(c.Allocs) / float64(of)}
}

// Median is the middle one of a figure of some samples, 0 of none.
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
