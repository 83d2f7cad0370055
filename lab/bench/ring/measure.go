package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// sample is the cost per slot in one round, in nanoseconds.
type sample struct{ wall, cpu float64 }

// per returns the cost per slot.
func per(cost measure.Cost, slots uint64) sample {
	return sample{float64(cost.Wall) / float64(slots), float64(cost.CPU) / float64(slots)}
}

// endToEnd sends count numbers from several producers to one consumer. It returns the cost per
// number from the first put to the last take.
func endToEnd(q queue, producers int, count uint64) (sample, error) {
	each := count / uint64(producers)
	count = each * uint64(producers)
	var done sync.WaitGroup
	var seen tally
	cost, err := measure.Of(func() error {
		for p := range producers {
			done.Go(func() { q.put(uint64(p)*each, each) })
		}
		q.take(count, &seen)
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	done.Wait()
	if err := seen.check(count); err != nil {
		return sample{}, err
	}
	return per(cost, count), nil
}

// publishOnly fills an empty queue without a consumer, and returns the producers' own time per
// slot. Emptying the queue is not measured.
func publishOnly(q queue, producers, slots int) (sample, error) {
	each := uint64(slots / producers)
	count := each * uint64(producers)
	var done sync.WaitGroup
	var spent atomic.Int64
	begin := make(chan struct{})
	for p := range producers {
		done.Go(func() {
			<-begin
			start := time.Now()
			q.put(uint64(p)*each, each)
			spent.Add(int64(time.Since(start)))
		})
	}
	cost, err := measure.Of(func() error {
		close(begin)
		done.Wait()
		return nil
	})
	if err != nil {
		return sample{}, err
	}
	var seen tally
	q.take(count, &seen)
	if err := seen.check(count); err != nil {
		return sample{}, err
	}
	cost.Wall = time.Duration(spent.Load())
	return per(cost, count), nil
}

// check returns an error unless each number below count was received exactly once.
func (t *tally) check(count uint64) error {
	if t.count != count || t.sum != 3*(count*(count-1)/2) {
		return fmt.Errorf("check round: %d slots with sum %d arrived of %d", t.count, t.sum, count)
	}
	return nil
}
