package main

import (
	"runtime"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// sample is the cost of one flush: CPU milliseconds, allocations, and bytes of its payloads.
type sample struct{ cpu, allocations, bytes float64 }

// measured collects garbage, so that no round pays for filling, and then measures one flush.
func measured(flush func() [][]byte) (sample, error) {
	runtime.GC()
	var bodies [][]byte
	cost, err := measure.Of(func() error {
		bodies = flush()
		return nil
	})
	bytes := 0
	for _, body := range bodies {
		bytes += len(body)
	}
	return sample{
		cpu: cost.CPU.Seconds() * 1e3, allocations: float64(cost.Allocs),
		bytes: float64(bytes),
	}, err
}

// median returns the median of each figure separately.
func median(all []sample) sample {
	return sample{
		cpu:         measure.Median(all, func(s sample) float64 { return s.cpu }),
		allocations: measure.Median(all, func(s sample) float64 { return s.allocations }),
		bytes:       measure.Median(all, func(s sample) float64 { return s.bytes }),
	}
}
