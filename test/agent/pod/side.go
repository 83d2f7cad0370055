package main

import (
	"errors"
	"sync"
	"time"
)

// side is one variant of a cell: its pod, its load, and the measurements of both.
type side struct {
	cell    cell
	variant variant
	pod     *pod
	load    *load

	slices   []usage // since the bill began, of this and all other sides
	billed   window  // requests in its own slices
	interval window  // requests of the interval with unique names
	pauses   int     // garbage collections in its own slices
	pauseMs  float64
}

// startPods starts the pods of a cell. The applications, which are the slowest, start in parallel.
func startPods(p places, c cell) (all []*side, err error) {
	defer func() {
		if err != nil {
			clearAll(all)
		}
	}()
	for i, w := range c.app.variants {
		raised, err := startPod(p, c, w, firstPort(i))
		if err != nil {
			return all, err
		}
		all = append(all, &side{cell: c, variant: w, pod: raised, load: newLoad(raised.address)})
	}
	return all, together(all, func(s *side) error { return await(s.pod.app, "tcp", s.pod.address) })
}

func clearAll(all []*side) {
	for _, s := range all {
		s.pod.clear()
	}
}

// together calls do for all sides in parallel.
func together(all []*side, do func(*side) error) error {
	failed := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { failed[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// send gives the load to this side for a while, or for up to three times as long if the application is
// too slow.
func (s *side) send(path func(number int) string, lasts time.Duration) window {
	return s.load.run(path, s.cell.app.rate, lasts, 3*lasts)
}
