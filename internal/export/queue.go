package export

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// maxDeliveries is the maximum number of payloads in flight to a destination. With a response time
// of 200 ms this is 140 payloads per second. At a shutdown right after a seal, two cycles with 256
// origins then take 4 s of the default grace period of 5 s.
const maxDeliveries = 28

// MaxConnections is the maximum number of open connections to a destination: one per payload in
// flight, one for a probe, and one for Exporter.Watch.
const MaxConnections = maxDeliveries + 2

// queue contains the payloads that are neither delivered nor lost: waiting ones, oldest first, and those in flight.
// Both lists are short (maxWaiting, maxDeliveries), so linear searches are fast enough.
type queue struct {
	maxBytes    int // limit for waiting payloads
	maxInFlight int // limit for bytes in flight, unless there is only one payload
	inOrder     bool

	mu       sync.Mutex
	waiting  []*Payload
	bytes    int // total of waiting
	inFlight []*Payload
}

// put adds a payload, new or to be retried, to the waiting payloads in the order of creation. If they then exceed
// their limits, put removes the oldest ones and returns them. They can include p.
func (q *queue) put(p *Payload) (evicted []*Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	index := len(q.waiting)
	for index > 0 && q.waiting[index-1].isNewerThan(p) {
		index--
	}
	q.waiting = slices.Insert(q.waiting, index, p)
	q.bytes += len(p.Body)
	for q.bytes > q.maxBytes || len(q.waiting) > maxWaiting {
		evicted = append(evicted, q.remove(0, 1)...)
	}
	return evicted
}

// isNewerThan reports whether p was created after other.
func (p *Payload) isNewerThan(other *Payload) bool { return p.sequence > other.sequence }

// take moves the payload to send next from the waiting payloads to those in flight, and returns it. It returns nil
// if no payload can be sent now.
func (q *queue) take() *Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	index := q.nextIndex()
	if index < 0 {
		return nil
	}
	p := q.waiting[index]
	if len(p.Body) > q.bytesAvailable() {
		return nil // smaller payloads must not overtake it, because it could then wait forever
	}
	q.remove(index, index+1)
	q.inFlight = append(q.inFlight, p)
	return p
}

// nextIndex returns the index in q.waiting of the payload to send next, or -1 if none can be sent now. If q.inOrder
// is true, payloads are sent one at a time, oldest first. The caller holds the lock.
func (q *queue) nextIndex() int {
	if !q.inOrder {
		return q.indexOfFewestTries()
	}
	if len(q.waiting) > 0 && len(q.inFlight) == 0 {
		return 0 // the oldest payload
	}
	return -1
}

// indexOfFewestTries returns the index in q.waiting of the payload with the fewest tries. It ignores payloads from
// processes (origins) with a payload in flight, because the payloads of a process must arrive in order. It returns
// -1 if there is no other payload. The caller holds the lock.
func (q *queue) indexOfFewestTries() int {
	best := -1
	for i, p := range q.waiting {
		hasFewerTries := best < 0 || p.tries < q.waiting[best].tries
		if hasFewerTries && !q.isOriginInFlight(p.Origin) {
			best = i
		}
	}
	return best
}

// isOriginInFlight reports whether a payload of an origin is in flight. The caller holds the lock.
func (q *queue) isOriginInFlight(o span.Origin) bool {
	return slices.ContainsFunc(q.inFlight, func(p *Payload) bool { return p.Origin == o })
}

// bytesAvailable returns the maximum length of a payload that can be sent now, so that all payloads in flight have
// at most maxInFlight bytes together. There is no limit if no payload is in flight. If maxDeliveries are in flight,
// the result is -1. The caller holds the lock.
func (q *queue) bytesAvailable() int {
	switch {
	case len(q.inFlight) == 0:
		return math.MaxInt
	case len(q.inFlight) >= maxDeliveries:
		return -1
	}
	available := q.maxInFlight
	for _, p := range q.inFlight {
		available -= len(p.Body)
	}
	return available
}

// endDelivery removes a payload that is no longer in flight.
func (q *queue) endDelivery(p *Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight = slices.DeleteFunc(q.inFlight, func(sent *Payload) bool { return sent == p })
}

// expire removes the waiting payloads that were created at the given time or earlier, and returns
// them.
func (q *queue) expire(t time.Time) []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	firstYounger := slices.IndexFunc(q.waiting, func(p *Payload) bool { return p.created.After(t) })
	if firstYounger < 0 {
		firstYounger = len(q.waiting)
	}
	return q.remove(0, firstYounger)
}

// drain removes and returns all waiting payloads.
func (q *queue) drain() []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(0, len(q.waiting))
}

// removeGraph removes the waiting payloads that contain edges of the service graph, and returns them.
func (q *queue) removeGraph() (removed []*Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := 0; i < len(q.waiting); {
		if q.waiting[i].IsGraph {
			removed = append(removed, q.remove(i, i+1)...)
		} else {
			i++
		}
	}
	return removed
}

// oldestWaiting returns the creation time of the oldest waiting payload. It returns false if no
// payload is waiting.
func (q *queue) oldestWaiting() (created time.Time, isAny bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return q.waiting[0].created, true // the payloads are in the order of creation
}

// oldest returns the creation time of the oldest payload, waiting or in flight. It returns false if
// the queue contains no payload.
func (q *queue) oldest() (created time.Time, isAny bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	payloads := slices.Concat(q.waiting, q.inFlight)
	if len(payloads) == 0 {
		return time.Time{}, false
	}
	oldest := slices.MinFunc(payloads, func(a, b *Payload) int { return a.created.Compare(b.created) })
	return oldest.created, true
}

// size returns the number of waiting payloads, and their bytes.
func (q *queue) size() (payloads, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting), q.bytes
}

// deliveries returns the number of payloads in flight.
func (q *queue) deliveries() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.inFlight)
}

// remove removes and returns the waiting payloads from index first up to but excluding end. The caller holds the lock.
func (q *queue) remove(first, end int) []*Payload {
	removed := slices.Clone(q.waiting[first:end])
	for _, p := range removed {
		q.bytes -= len(p.Body)
	}
	q.waiting = slices.Delete(q.waiting, first, end)
	return removed
}
