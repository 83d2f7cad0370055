package main

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// snapshot is 112 bytes of numbers, the size that a span's statistics need when
// its key travels with it.
type snapshot [14]uint64

// runLength is how many snapshots a producer publishes at a time: a small trace.
const runLength = 16

// slots is the size of the ring and of the queue.
const slots = 8192

// queue is what the two have in common.
type queue interface {
	name() string
	put(number uint64) bool // a run; false: there was no room for all of it
	take(sum *uint64)       // until close
	close()
	accepted() uint64
}

type ringQueue struct {
	ring  *ring.Ring[snapshot]
	taken atomic.Uint64
}

func newRingQueue() *ringQueue {
	r, err := ring.New[snapshot](slots)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return &ringQueue{ring: r}
}

func (q *ringQueue) name() string { return "ring" }

func (q *ringQueue) put(number uint64) bool {
	claim, result := q.ring.Claim(runLength)
	if result != ring.Claimed {
		return false
	}
	for i := range runLength {
		*claim.Slot(i) = snapshot{0: number, 6: number, 13: number}
	}
	claim.Publish()
	return true
}

func (q *ringQueue) take(sum *uint64) {
	q.ring.Consume(512, func(some []snapshot) {
		for i := range some {
			*sum += some[i][0] + some[i][6] + some[i][13]
		}
		q.taken.Store(q.taken.Load() + uint64(len(some)))
	}, func(ring.Signal) {})
}

func (q *ringQueue) close()           { q.ring.Send(ring.Signal{Kind: ring.Stop}) }
func (q *ringQueue) accepted() uint64 { return q.taken.Load() }

// objectQueue is a queue of fresh objects, one a snapshot, as the tracers have
// it. Its runs are not whole: what found room stays.
type objectQueue struct {
	objects chan *snapshot
	taken   atomic.Uint64
}

func newObjectQueue() *objectQueue { return &objectQueue{objects: make(chan *snapshot, slots)} }

func (q *objectQueue) name() string { return "queue of objects" }

func (q *objectQueue) put(number uint64) bool {
	for range runLength {
		select {
		case q.objects <- &snapshot{0: number, 6: number, 13: number}:
		default:
			return false
		}
	}
	return true
}

func (q *objectQueue) take(sum *uint64) {
	for s := range q.objects {
		*sum += s[0] + s[6] + s[13]
		q.taken.Store(q.taken.Load() + 1)
	}
}

func (q *objectQueue) close()           { close(q.objects) }
func (q *objectQueue) accepted() uint64 { return q.taken.Load() }

// throughput is what a race came to.
type throughput struct{ attempted, accepted, publish float64 }

// race has producers publish for a time, and one consumer take. What it accepted
// has gone from end to end.
func race(q queue, producers int, lasts time.Duration) throughput {
	var sum uint64
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		q.take(&sum)
	}()
	var publishing sync.WaitGroup
	var isOver atomic.Bool
	attempts := make([]uint64, producers)
	begun := time.Now()
	for p := range producers {
		publishing.Go(func() {
			n := uint64(0)
			for ; !isOver.Load(); n += runLength {
				if !q.put(n) {
					runtime.Gosched() // or refusing would keep the consumer from its processor
				}
			}
			attempts[p] = n
		})
	}
	time.Sleep(lasts)
	isOver.Store(true)
	publishing.Wait()
	spent := time.Since(begun).Seconds()
	q.close()
	<-taken
	var attempted uint64
	for _, n := range attempts {
		attempted += n
	}
	return throughput{
		attempted: float64(attempted) / spent, accepted: float64(q.accepted()) / spent,
		publish: spent * 1e9 * float64(producers) / float64(attempted),
	}
}
