package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// sample is the cost of one slot in one round, in nanoseconds.
type sample struct{ wall, cpu float64 }

// cpuTime is what all threads of this process have used, kernel included.
func cpuTime() (time.Duration, error) {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// endToEnd sends count numbers from several producers to one consumer and
// divides the time from the first put to the last take.
func endToEnd(q queue, producers int, count uint64) (sample, error) {
	each := count / uint64(producers)
	count = each * uint64(producers)
	var done sync.WaitGroup
	var seen tally
	before, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	start := time.Now()
	for p := range producers {
		done.Go(func() { q.put(uint64(p)*each, each) })
	}
	q.take(count, &seen)
	wall := time.Since(start)
	after, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	done.Wait()
	if err := seen.check(count); err != nil {
		return sample{}, err
	}
	return sample{float64(wall) / float64(count), float64(after-before) / float64(count)}, nil
}

// publishOnly fills an empty queue with nobody taking, and divides what the
// producers measured of their own time. Emptying it is not measured.
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
	before, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	close(begin)
	done.Wait()
	after, err := cpuTime()
	if err != nil {
		return sample{}, err
	}
	var seen tally
	q.take(count, &seen)
	if err := seen.check(count); err != nil {
		return sample{}, err
	}
	return sample{float64(spent.Load()) / float64(count), float64(after-before) / float64(count)}, nil
}

// check tells whether the numbers below count came, each once.
func (t *tally) check(count uint64) error {
	if t.count != count || t.sum != 3*(count*(count-1)/2) {
		return fmt.Errorf("check round: %d slots with sum %d arrived of %d", t.count, t.sum, count)
	}
	return nil
}
