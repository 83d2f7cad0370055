package main

import (
	"runtime"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// snapshot has the size of a span's statistics together with its key: 112 bytes.
type snapshot [14]uint64

// queue is the interface of all contestants. put adds consecutive numbers from first on. take
// passes numbers to a tally until the tally has its total, and returns then.
type queue interface {
	put(first, count uint64)
	take(until uint64, into *tally)
}

// contestant creates queues of one kind.
type contestant struct {
	name string
	run  int // slots that a producer puts at a time
	make func(slots int) (queue, error)
	load uint64 // numbers sent per round, chosen so that all rounds take about as long
}

var contestants = []contestant{
	{"ring", 1, newRing(1), 1 << 20},
	{"ring", 16, newRing(16), 1 << 22},
	{"ring", 64, newRing(64), 1 << 22},
	{"channel of structs", 1, newStructs, 1 << 18},
	{"channel of pointers", 1, newPointers, 1 << 18},
	{"xsync.MPMCQueue", 1, newXsync, 1 << 19},
}

// fill writes all of a slot with few instructions, with the number in each of its cache lines.
func fill(s *snapshot, number uint64) {
	*s = snapshot{0: number, 6: number, 13: number}
}

// tally is the consumer's work: it reads each cache line of each snapshot.
type tally struct{ count, sum uint64 }

func (t *tally) add(s *snapshot) {
	t.count++
	t.sum += s[0] + s[6] + s[13]
}

type ringQueue struct {
	ring *ring.Ring[snapshot]
	run  uint64
}

// turnLimit is the number of items that a drainer of the daemon takes per turn.
const turnLimit = 512

func newRing(run int) func(int) (queue, error) {
	return func(slots int) (queue, error) {
		r, err := ring.New[snapshot](slots)
		return &ringQueue{r, uint64(run)}, err
	}
}

func (q *ringQueue) put(first, count uint64) {
	for end := first + count; first < end; {
		c, result := q.ring.Claim(int(min(q.run, end-first)))
		if result != ring.Claimed {
			runtime.Gosched()
			continue
		}
		a, b := c.Segments()
		for i := range a {
			fill(&a[i], first+uint64(i))
		}
		first += uint64(len(a))
		for i := range b {
			fill(&b[i], first+uint64(i))
		}
		first += uint64(len(b))
		c.Publish()
	}
}

func (q *ringQueue) take(until uint64, into *tally) {
	q.ring.Consume(turnLimit, func(slots []snapshot) {
		for i := range slots {
			into.add(&slots[i])
		}
		if into.count == until {
			q.ring.Send(ring.Signal{Kind: ring.Stop})
		}
	}, func(ring.Signal) {})
}

type structs chan snapshot

func newStructs(slots int) (queue, error) { return make(structs, slots), nil }

func (q structs) put(first, count uint64) {
	var s snapshot
	for number := first; number < first+count; number++ {
		fill(&s, number)
		q <- s
	}
}

func (q structs) take(until uint64, into *tally) {
	for into.count < until {
		s := <-q
		into.add(&s)
	}
}

type pointers chan *snapshot

func newPointers(slots int) (queue, error) { return make(pointers, slots), nil }

func (q pointers) put(first, count uint64) {
	for number := first; number < first+count; number++ {
		s := new(snapshot)
		fill(s, number)
		q <- s
	}
}

func (q pointers) take(until uint64, into *tally) {
	for into.count < until {
		into.add(<-q)
	}
}

type xsyncQueue struct{ *xsync.MPMCQueue[snapshot] }

func newXsync(slots int) (queue, error) {
	return xsyncQueue{xsync.NewMPMCQueue[snapshot](slots)}, nil
}

func (q xsyncQueue) put(first, count uint64) {
	var s snapshot
	for number := first; number < first+count; number++ {
		fill(&s, number)
		for !q.TryEnqueue(s) {
			runtime.Gosched()
		}
	}
}

func (q xsyncQueue) take(until uint64, into *tally) {
	for into.count < until {
		s, ok := q.TryDequeue()
		if !ok {
			runtime.Gosched()
			continue
		}
		into.add(&s)
	}
}
