package flush

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// maxDeliveries is how many payloads may be under way to a destination at once. One
// that answers within 200 ms is brought 140 payloads a second: at a stop just after a
// seal, two cycles of 256 origins take it 4 s of the 5 s of grace.
const maxDeliveries = 28

// MaxConnections is how many connections to a destination may be open at once: one for
// each payload under way, one for a probe, one for the question what it wants.
const MaxConnections = maxDeliveries + 2

// queue holds the payloads that have no outcome yet: those that wait for their turn,
// oldest first, and those that are under way. Both are short (maxWaiting,
// maxDeliveries), so they are searched rather than indexed.
type queue struct {
	maxBytes    int // of those that wait
	maxUnderWay int // bytes of those under way, where they are several
	inOrder     bool

	mu       sync.Mutex
	waiting  []*Payload
	bytes    int // of waiting
	underWay []*Payload
}

// put adds a payload and returns what had to give way to it: the oldest, which
// may be the payload itself.
func (q *queue) put(p *Payload) (evicted []*Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at, _ := slices.BinarySearchFunc(q.waiting, p.sequence, func(w *Payload, sequence uint64) int {
		return cmp.Compare(w.sequence, sequence)
	})
	q.waiting = slices.Insert(q.waiting, at, p)
	q.bytes += len(p.Body)
	n := 0
	for over := q.bytes; over > q.maxBytes || len(q.waiting)-n > maxWaiting; n++ {
		over -= len(q.waiting[n].Body)
	}
	return q.remove(0, n)
}

// take moves the payload whose turn it is from those that wait to those under way:
// the one that has been tried least, since a payload that the destination keeps
// failing on must not stand before all others; the oldest of several. Of one origin
// only one is under way at a time, or a later one could arrive first. Where all must
// arrive in order it is the oldest, alone. It returns nil where there is none, or where
// it must wait for others to return.
func (q *queue) take() *Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.next()
	// A large one is not overtaken by smaller ones that would fit: it would wait as
	// long as any of those came.
	if at < 0 || len(q.waiting[at].Body) > q.roomUnderWay() {
		return nil
	}
	p := q.remove(at, at+1)[0]
	q.underWay = append(q.underWay, p)
	return p
}

// next is the place among those that wait of the one whose turn it is, -1 where it is
// nobody's. The caller holds the lock.
func (q *queue) next() int {
	at := -1
	for i, p := range q.waiting {
		if q.inOrder && (i > 0 || len(q.underWay) > 0) {
			break
		}
		if (at < 0 || p.tries < q.waiting[at].tries) && !q.originUnderWay(p) {
			at = i
		}
	}
	return at
}

// originUnderWay says whether a payload of the same origin is. The caller holds the
// lock.
func (q *queue) originUnderWay(p *Payload) bool {
	return slices.ContainsFunc(q.underWay, func(u *Payload) bool { return u.Origin == p.Origin })
}

// roomUnderWay is how many bytes the next one may have. One alone may have any
// number, so together they take no more memory than the largest does. The caller
// holds the lock.
func (q *queue) roomUnderWay() int {
	switch len(q.underWay) {
	case 0:
		return math.MaxInt
	case maxDeliveries:
		return -1
	}
	room := q.maxUnderWay
	for _, u := range q.underWay {
		room -= len(u.Body)
	}
	return room
}

// returned ends a delivery. The payload is in nobody's hands then.
func (q *queue) returned(p *Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.underWay = slices.DeleteFunc(q.underWay, func(u *Payload) bool { return u == p })
}

// expire removes the waiting payloads born before a time.
func (q *queue) expire(before time.Time) []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && !q.waiting[n].born.After(before) {
		n++
	}
	return q.remove(0, n)
}

// drain removes all that wait.
func (q *queue) drain() []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(0, len(q.waiting))
}

// oldest is when the oldest payload that waits was born, false when none does.
func (q *queue) oldest() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return q.waiting[0].born, true
}

// eldest is when the oldest payload of all was born, under way or not, false when there
// is none.
func (q *queue) eldest() (born time.Time, any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, p := range slices.Concat(q.underWay, q.waiting[:min(1, len(q.waiting))]) {
		if i == 0 || p.born.Before(born) {
			born = p.born
		}
	}
	return born, len(q.underWay)+len(q.waiting) > 0
}

// size is of those that wait.
func (q *queue) size() (payloads, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.bytes
}

// deliveries is how many are under way.
func (q *queue) deliveries() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.underWay)
}

// remove takes out a run of those that wait. The caller holds the lock.
func (q *queue) remove(from, to int) []*Payload {
	removed := slices.Clone(q.waiting[from:to])
	for _, p := range removed {
		q.bytes -= len(p.Body)
	}
	q.waiting = slices.Delete(q.waiting, from, to)
	return removed
}
