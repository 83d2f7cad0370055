package ring

import (
	"runtime"
	"sync"
	"testing"
)

// stamp is a slot that says who wrote it and how many that one had written
// before. The rest is filled from it, so that a torn or early read shows.
type stamp struct {
	producer, number uint64
	echo             [12]uint64
}

func (s *stamp) write(producer, number uint64) {
	s.producer, s.number = producer, number
	for i := range s.echo {
		s.echo[i] = producer<<32 | number
	}
}

func (s *stamp) whole() bool {
	for _, e := range s.echo {
		if e != s.producer<<32|s.number {
			return false
		}
	}
	return true
}

// produce writes numbers 0 to count-1 in runs of n, waiting where there is no room.
func produce(t *testing.T, r *Ring[stamp], producer, count, n uint64) {
	for next := uint64(0); next < count; {
		run := min(n, count-next)
		c, result := r.Claim(int(run))
		if result != Claimed {
			runtime.Gosched()
			continue
		}
		for i := range c.Len() {
			c.Slot(i).write(producer, next)
			next++
		}
		c.Publish()
	}
}

// consumeAll checks that each producer's numbers come whole, once and in order,
// until all producers are done.
func consumeAll(t *testing.T, r *Ring[stamp], limit int, counts []uint64, producers *sync.WaitGroup) {
	t.Helper()
	go func() {
		producers.Wait()
		r.Send(Signal{Kind: Stop})
	}()
	seen := make([]uint64, len(counts))
	r.Consume(limit, func(slots []stamp) {
		for i := range slots {
			s := &slots[i]
			if !s.whole() || s.number != seen[s.producer] {
				t.Fatalf("producer %d: got number %d (whole: %t), want %d", s.producer, s.number, s.whole(), seen[s.producer])
			}
			seen[s.producer]++
		}
	}, func(Signal) {})
	for p, count := range counts {
		if seen[p] != count {
			t.Errorf("producer %d: %d slots arrived, want %d", p, seen[p], count)
		}
	}
}

func TestEveryValueOnceAndInOrder(t *testing.T) {
	for _, test := range []struct {
		name             string
		producers, count int
		run, slots       int
		limit            int
	}{
		{"singles", 8, 50_000, 1, 1024, 256},
		{"batches", 8, 200 * 16, 16, 1024, 256},
		{"small ring", 8, 5_000, 3, 8, 2},
		{"one slot", 4, 2_000, 1, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := New[stamp](test.slots)
			if err != nil {
				t.Fatal(err)
			}
			counts := make([]uint64, test.producers)
			var producers sync.WaitGroup
			for p := range counts {
				counts[p] = uint64(test.count)
				producers.Go(func() { produce(t, r, uint64(p), uint64(test.count), uint64(test.run)) })
			}
			consumeAll(t, r, test.limit, counts, &producers)
		})
	}
}
