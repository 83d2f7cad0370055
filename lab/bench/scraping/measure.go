package main

import (
	"runtime"
	"sync"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// sample is the cost of one response or flush: milliseconds, allocations, and bytes of the
// response.
type sample struct{ cpu, wall, allocations, bytes float64 }

// measured collects garbage, then runs do once and returns its cost.
func measured(do func() (int, error)) (sample, error) {
	runtime.GC()
	bytes := 0
	cost, err := measure.Of(func() (err error) {
		bytes, err = do()
		return err
	})
	return sample{
		cost.CPU.Seconds() * 1e3, cost.Wall.Seconds() * 1e3, float64(cost.Allocs), float64(bytes),
	}, err
}

// medians runs all sides in turns, and returns the median sample of each.
func medians(rounds int, sides ...func() (int, error)) (all []sample, err error) {
	samples := make([][]sample, len(sides))
	for range rounds {
		for i, side := range sides {
			s, err := measured(side)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
		}
	}
	for _, s := range samples {
		all = append(all, median(s))
	}
	return all, nil
}

// median returns the median of each figure separately.
func median(all []sample) sample {
	return sample{
		cpu:         measure.Median(all, func(s sample) float64 { return s.cpu }),
		wall:        measure.Median(all, func(s sample) float64 { return s.wall }),
		allocations: measure.Median(all, func(s sample) float64 { return s.allocations }),
		bytes:       measure.Median(all, func(s sample) float64 { return s.bytes }),
	}
}

// flushes measures a flush alone and during two hanging scrapes, in turns.
func flushes(rounds int, w *work) (alone, duringScrapes sample, err error) {
	var samples [2][]sample
	for range rounds {
		for i := range samples {
			release := func() {}
			if i == 1 {
				release = hanging(w, 2)
			}
			s, err := measured(func() (int, error) { return 0, w.flush() })
			release()
			if err != nil {
				return alone, duringScrapes, err
			}
			samples[i] = append(samples[i], s)
		}
	}
	return median(samples[0]), median(samples[1]), nil
}

// hanging starts some scrapes that do not read their responses before release is called. It
// returns when all of them hang.
func hanging(w *work, count int) (release func()) {
	began, end := make(chan struct{}, count), make(chan struct{})
	var group sync.WaitGroup
	for range count {
		group.Go(func() {
			once := sync.OnceFunc(func() {
				began <- struct{}{}
				<-end
			})
			w.exporter.ServeHTTP(&thrown{before: once}, forms[0].request())
		})
	}
	for range count {
		<-began
	}
	return func() {
		close(end)
		group.Wait()
	}
}
