package ring

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// item is the slot that a producer writes: the number of the producer, and the number of the item.
type item struct {
	producer, number, check uint64
}

// consume runs a consumer that expects each producer's items in order, and returns the number of
// items until Stop.
func consume(t *testing.T, r *Ring[item], producers, limit int) func() []uint64 {
	seen := make([]uint64, producers)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Consume(limit, func(items []item) {
			for _, i := range items {
				if i.check != i.producer*31+i.number {
					t.Errorf("a torn slot: %+v", i)
				}
				if i.number != seen[i.producer] {
					t.Errorf("producer %d: number %d, want %d", i.producer, i.number, seen[i.producer])
				}
				seen[i.producer] = i.number + 1
			}
		}, func(Signal) {})
	}()
	return func() []uint64 {
		if !r.Send(Signal{Kind: Stop}) {
			t.Error("no room for a stop")
		}
		<-done
		return seen
	}
}

// produce publishes count items in runs of the given length, with a skipped run before each fourth.
func produce(r *Ring[item], producer uint64, count, run int) {
	number := uint64(0)
	for i := 0; number < uint64(count); i++ {
		n := min(run, count-int(number))
		if i%4 == 3 {
			c := insist(r, n)
			c.Skip()
		}
		c := insist(r, n)
		for i := range n {
			*c.Slot(i) = item{producer, number, producer*31 + number}
			number++
		}
		c.Publish()
	}
}

// insist claims until the ring has room.
func insist(r *Ring[item], n int) Claim[item] {
	for {
		if c, result := r.Claim(n); result == Claimed {
			return c
		}
		runtime.Gosched()
	}
}

// TestRing_ConcurrentProducers publishes 400,000 items from eight producers, in single slots and in runs, and 200
// batches of 16 each, with fewer, as many and more schedulers than cores.
func TestRing_ConcurrentProducers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 2, 16} {
		for _, shape := range []struct{ producers, each, run, slots int }{
			{8, 50_000, 1, 1024},
			{8, 200 * 16, 16, 256},
			{8, 20_000, 5, 16},
			{3, 5_000, 2, 2},
		} {
			t.Run(fmt.Sprintf("%d/%+v", processors, shape), func(t *testing.T) {
				runtime.GOMAXPROCS(processors)
				r, err := New[item](shape.slots)
				if err != nil {
					t.Fatal(err)
				}
				stop := consume(t, r, shape.producers, 64)
				var producing sync.WaitGroup
				for p := range shape.producers {
					producing.Go(func() { produce(r, uint64(p), shape.each, shape.run) })
				}
				producing.Wait()
				for p, seen := range stop() {
					if seen != uint64(shape.each) {
						t.Errorf("producer %d: %d of %d seen", p, seen, shape.each)
					}
				}
				stats := r.Stats()
				if stats.Used != 0 || stats.Published != uint64(shape.producers*shape.each) ||
					stats.HighWater > shape.slots {
					t.Errorf("in the end %+v", stats)
				}
			})
		}
	}
}

// TestSignals_AreBoundaries sends reports between items, and expects each after all items that were
// published before it.
func TestSignals_AreBoundaries(t *testing.T) {
	r, err := New[item](64)
	if err != nil {
		t.Fatal(err)
	}
	var seen uint64
	var reports atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Consume(64, func(items []item) { seen += uint64(len(items)) }, func(s Signal) {
			if s.Kind == Report {
				defer reports.Add(1)
			}
			if s.Kind == Report && seen != s.Arg {
				t.Errorf("a report after %d items came after %d", s.Arg, seen)
			}
		})
	}()
	sent, sentReports := uint64(0), uint64(0)
	for range 2000 {
		c, result := r.Claim(3)
		if result != Claimed {
			runtime.Gosched()
			continue
		}
		c.Publish()
		sent += 3
		for !r.Send(Signal{Kind: Report, Arg: sent}) {
			time.Sleep(time.Microsecond)
		}
		// Items published after a report can be consumed before it, and the consumer of this test
		// could not distinguish them. So nothing is published until the report was delivered.
		for sentReports++; reports.Load() < sentReports; {
			runtime.Gosched()
		}
	}
	r.Send(Signal{Kind: Clear})
	r.Send(Signal{Kind: Stop})
	<-done
	if seen != sent {
		t.Errorf("%d of %d seen", seen, sent)
	}
}

// TestMailbox_IsBounded fills the mailbox without a consumer.
func TestMailbox_IsBounded(t *testing.T) {
	r, err := New[item](8)
	if err != nil {
		t.Fatal(err)
	}
	for i := range signalDepth {
		if !r.Send(Signal{Kind: Report, Arg: uint64(i)}) {
			t.Fatalf("no room for signal %d", i)
		}
	}
	if r.Send(Signal{Kind: Stop}) {
		t.Error("room for one more than there is")
	}
}

// TestProducers_AbandonedClaim abandons a claim, and expects it to be skipped and counted.
func TestProducers_AbandonedClaim(t *testing.T) {
	r, err := New[item](8)
	if err != nil {
		t.Fatal(err)
	}
	stop := consume(t, r, 1, 8)
	func() {
		defer func() { _ = recover() }()
		c, _ := r.Claim(3)
		defer c.Abandon()
		panic("while filling")
	}()
	produce(r, 0, 5, 1)
	if seen := stop(); seen[0] != 5 {
		t.Errorf("%d of 5 seen after a producer that abandoned", seen[0])
	}
	if stats := r.Stats(); stats.Abandoned != 3 || stats.Skipped < 3 {
		t.Errorf("in the end %+v", stats)
	}
}
