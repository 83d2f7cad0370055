package flush

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// queue holds the payloads that wait for the agent, oldest first. It is short
// (maxWaiting), so it is searched rather than indexed.
type queue struct {
	maxBytes int

	mu      sync.Mutex
	waiting []*payload
	bytes   int
}

// put adds a payload and returns what had to give way to it: the oldest, which
// may be the payload itself.
func (q *queue) put(p *payload) (evicted []*payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, _ := slices.BinarySearchFunc(q.waiting, p.sequence, func(w *payload, sequence uint64) int {
		return cmp.Compare(w.sequence, sequence)
	})
	q.waiting = slices.Insert(q.waiting, at, p)
	q.bytes += len(p.body)
	n := 0
	for over := q.bytes; over > q.maxBytes || len(q.waiting)-n > maxWaiting; n++ {
		over -= len(q.waiting[n].body)
	}
	return q.remove(0, n)
}

// take removes the payload that has been tried least, the oldest of several: a
// payload that the agent keeps failing on must not stand before all others.
func (q *queue) take() *payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return nil
	}
	at := 0
	for i, p := range q.waiting {
		if p.tries < q.waiting[at].tries {
			at = i
		}
	}
	return q.remove(at, at+1)[0]
}

// expire removes the payloads born before a time.
func (q *queue) expire(before time.Time) []*payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && !q.waiting[n].born.After(before) {
		n++
	}
	return q.remove(0, n)
}

// drain removes all.
func (q *queue) drain() []*payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(0, len(q.waiting))
}

// oldest is when the oldest payload was born, false when none waits.
func (q *queue) oldest() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return q.waiting[0].born, true
}

func (q *queue) size() (payloads, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.bytes
}

// remove takes out a run of payloads. The caller holds the lock.
func (q *queue) remove(from, to int) []*payload {
	removed := slices.Clone(q.waiting[from:to])
	for _, p := range removed {
		q.bytes -= len(p.body)
	}
	q.waiting = slices.Delete(q.waiting, from, to)
	return removed
}
