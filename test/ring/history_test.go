package ring

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// clock is the logical time of a history, which orders events.
type clock struct{ now atomic.Int64 }

func (c *clock) tick() int64 { return c.now.Add(1) }

// history is a list of operations. Each operation takes effect at some time between its call and its
// return.
type history struct {
	clock
	mu         sync.Mutex
	operations []porcupine.Operation
}

func (h *history) add(client int, o operation, result ring.Result, from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: client, Input: o, Output: result, Call: from, Return: to,
	})
}

// slot identifies a run and the position within the run.
type slot struct{ id, place, length uint32 }

// recorder is the consumer. It records when it received each run, and the earliest and latest time at
// which the run's slots can have become free.
type recorder struct {
	history *history
	client  int
	single  bool // each turn is one run, so its slots are free before the next event
	last    int64
	pending []pendingFree
	broken  []slot // slots that did not continue their run
	expect  slot
}

// pendingFree is a received run, with the earliest time at which its slots can become free.
type pendingFree struct {
	id   uint32
	from int64
}

// slots receives published slots.
func (r *recorder) slots(slots []slot) {
	entry := r.history.tick()
	for _, s := range slots {
		if s.place == 0 {
			if r.single {
				r.close(entry)
			}
			r.history.add(r.client, operation{act: take, id: s.id}, 0, r.last, entry)
			r.expect = s
		}
		if s != r.expect {
			r.broken = append(r.broken, s)
		}
		r.expect.place++
	}
	r.last = r.history.tick()
	for _, s := range slots {
		if s.place == s.length-1 {
			r.pending = append(r.pending, pendingFree{s.id, r.last})
		}
	}
}

// signal is called between turns, when all previous slots are free.
func (r *recorder) signal(s ring.Signal) {
	entry := r.history.tick()
	r.close(entry)
	if s.Kind == ring.Report {
		r.history.add(r.client, operation{act: deliver, id: uint32(s.Arg)}, 0, r.last, entry)
	}
	r.last = r.history.tick()
}

// close records that all runs received so far are free by the given time.
func (r *recorder) close(by int64) {
	for _, f := range r.pending {
		r.history.add(r.client+1, operation{act: free, id: f.id}, 0, f.from, by)
	}
	r.pending = r.pending[:0]
}

// skipFree records that a skipped run becomes free at an unknown time.
func (h *history) skipFree(client int, id uint32, from int64) {
	h.add(client, operation{act: free, id: id}, 0, from, math.MaxInt64)
}
