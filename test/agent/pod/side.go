package main

import (
	"errors"
	"sync"
	"time"
)

// side is one way of a cell, beside the others: its pod, its load, and what both showed.
type side struct {
	cell cell
	way  way
	pod  *pod
	load *load

	slices   []spent // since the bill began, its own and the others'
	billed   window  // its own slices
	interval window  // of the requests whose names are looked for
	pauses   int     // for collections, in its own slices
	pauseMs  float64
}

// raiseAll starts the pods of a cell's ways. The applications, which take longest, start
// at the same time.
func raiseAll(p places, c cell) (all []*side, err error) {
	defer func() {
		if err != nil {
			clearAll(all)
		}
	}()
	for i, w := range c.app.ways {
		raised, err := raise(p, c, w, firstPort(i))
		if err != nil {
			return all, err
		}
		all = append(all, &side{cell: c, way: w, pod: raised, load: newLoad(raised.address)})
	}
	return all, together(all, func(s *side) error { return await(s.pod.app, "tcp", s.pod.address) })
}

func clearAll(all []*side) {
	for _, s := range all {
		s.pod.clear()
	}
}

// together does something for all sides at once.
func together(all []*side, do func(*side) error) error {
	failed := make([]error, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() { failed[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// send gives it the load for a while, or three times as long where it is too slow.
func (s *side) send(path func(number int) string, lasts time.Duration) window {
	return s.load.run(path, s.cell.app.rate, lasts, 3*lasts)
}
