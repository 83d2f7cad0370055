package export

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// maxDeliveries is how many payloads can be in flight to a destination at the same time. A destination that
// answers within 200 ms then takes 140 payloads per second: at a shutdown right after a seal, two cycles of
// 256 origins take 4 s of the default grace period of 5 s.
const maxDeliveries = 28

// MaxConnections is how many connections to a destination can be open at the same time: one per payload in
// flight, one for a probe, one for the question what it wants.
const MaxConnections = maxDeliveries + 2

// queue holds the payloads that have no outcome yet: those that wait for their turn, oldest first, and
// those in flight. Both lists are short (maxWaiting, maxDeliveries), so they are searched, not indexed.
type queue struct {
	maxBytes    int // waiting
	maxInFlight int // bytes in flight, if there are several payloads
	inOrder     bool

	mu       sync.Mutex
	waiting  []*Payload
	bytes    int // of waiting
	inFlight []*Payload
}

// put adds a payload and returns those that are evicted for it: the oldest, which may be the payload
// itself.
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

// take moves the payload whose turn it is from waiting to in flight, and returns it, or nil if there is
// none or it must wait for others to return. The payload that was tried least goes first, because one that
// the destination keeps failing on must not hold up all others; then the oldest. Of each origin only one is
// in flight at a time, or a later one could arrive first. If all must arrive in order, the oldest goes,
// alone.
func (q *queue) take() *Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.next()
	// Smaller payloads that would fit do not overtake a large one, or it could wait forever.
	if at < 0 || len(q.waiting[at].Body) > q.roomInFlight() {
		return nil
	}
	p := q.remove(at, at+1)[0]
	q.inFlight = append(q.inFlight, p)
	return p
}

// next is the position of the waiting payload whose turn it is, -1 if there is none. The caller holds the
// lock.
func (q *queue) next() int {
	at := -1
	for i, p := range q.waiting {
		if q.inOrder && (i > 0 || len(q.inFlight) > 0) {
			break
		}
		if (at < 0 || p.tries < q.waiting[at].tries) && !q.originInFlight(p) {
			at = i
		}
	}
	return at
}

// originInFlight reports whether a payload of the same origin is in flight. The caller holds the lock.
func (q *queue) originInFlight(p *Payload) bool {
	return slices.ContainsFunc(q.inFlight, func(u *Payload) bool { return u.Origin == p.Origin })
}

// roomInFlight is how many bytes the next payload in flight can have. One alone can have any number. The
// caller holds the lock.
func (q *queue) roomInFlight() int {
	switch len(q.inFlight) {
	case 0:
		return math.MaxInt
	case maxDeliveries:
		return -1
	}
	room := q.maxInFlight
	for _, u := range q.inFlight {
		room -= len(u.Body)
	}
	return room
}

// returned ends a delivery. The payload is not in the queue afterwards.
func (q *queue) returned(p *Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight = slices.DeleteFunc(q.inFlight, func(u *Payload) bool { return u == p })
}

// expire removes the waiting payloads that were made before a time.
func (q *queue) expire(before time.Time) []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for n < len(q.waiting) && !q.waiting[n].born.After(before) {
		n++
	}
	return q.remove(0, n)
}

// drain removes all waiting payloads.
func (q *queue) drain() []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(0, len(q.waiting))
}

// oldest is when the oldest waiting payload was made, false if none waits.
func (q *queue) oldest() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return q.waiting[0].born, true
}

// eldest is when the oldest payload was made, in flight or waiting, false if there is none.
func (q *queue) eldest() (born time.Time, any bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, p := range slices.Concat(q.inFlight, q.waiting[:min(1, len(q.waiting))]) {
		if i == 0 || p.born.Before(born) {
			born = p.born
		}
	}
	return born, len(q.inFlight)+len(q.waiting) > 0
}

// size is of the waiting payloads.
func (q *queue) size() (payloads, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.bytes
}

// deliveries is how many payloads are in flight.
func (q *queue) deliveries() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.inFlight)
}

// remove takes out a run of the waiting payloads. The caller holds the lock.
func (q *queue) remove(from, to int) []*Payload {
	removed := slices.Clone(q.waiting[from:to])
	for _, p := range removed {
		q.bytes -= len(p.Body)
	}
	q.waiting = slices.Delete(q.waiting, from, to)
	return removed
}
