package main

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// sample is one flush: milliseconds, allocations, and the payload's bytes.
type sample struct{ cpu, wall, allocations, bytes float64 }

// cpuTime is what all threads of this process have used, kernel included.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic("BUG: read CPU time: " + err.Error())
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measure runs one flush on a heap that has just been collected, so that no round
// pays for what filling has left.
func measure(flush func() []byte) sample {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, cpu := time.Now(), cpuTime()
	body := flush()
	cpu, wall := cpuTime()-cpu, time.Since(began)
	runtime.ReadMemStats(&after)
	return sample{
		cpu: float64(cpu) / 1e6, wall: float64(wall) / 1e6,
		allocations: float64(after.Mallocs - before.Mallocs), bytes: float64(len(body)),
	}
}

// median takes each figure's own.
func median(all []sample) (m sample) {
	middle := func(figure func(sample) float64) float64 {
		slices.SortFunc(all, func(a, b sample) int { return cmp.Compare(figure(a), figure(b)) })
		return figure(all[len(all)/2])
	}
	m.cpu = middle(func(s sample) float64 { return s.cpu })
	m.wall = middle(func(s sample) float64 { return s.wall })
	m.allocations = middle(func(s sample) float64 { return s.allocations })
	m.bytes = middle(func(s sample) float64 { return s.bytes })
	return m
}
