package export

import (
	"cmp"
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

// queue contains the payloads without an outcome: waiting ones, oldest first, and those in flight.
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

// put adds a new payload, or one that is to be retried. If the queue then exceeds its limits, put
// evicts the oldest payloads and returns them. They can include p.
func (q *queue) put(p *Payload) (evicted []*Payload) {
	q.mu.Lock()
	defer q.mu.Unlock()
	index, _ := slices.BinarySearchFunc(q.waiting, p.sequence, func(w *Payload, sequence uint64) int {
		return cmp.Compare(w.sequence, sequence)
	})
	q.waiting = slices.Insert(q.waiting, index, p)
	q.bytes += len(p.Body)
	evictedCount := 0
	remainingBytes := q.bytes
	for remainingBytes > q.maxBytes || len(q.waiting)-evictedCount > maxWaiting {
		remainingBytes -= len(q.waiting[evictedCount].Body)
		evictedCount++
	}
	return q.remove(0, evictedCount)
}

// take returns the payload to send next, and moves it from the waiting payloads to those in flight.
// It returns nil if no payload can be sent now.
func (q *queue) take() *Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := q.nextIndex()
	if i < 0 {
		return nil
	}
	// If the payload is too large now, none is sent: if smaller payloads overtook it, it could wait
	// forever.
	if len(q.waiting[i].Body) > q.bytesAvailable() {
		return nil
	}
	p := q.remove(i, i+1)[0]
	q.inFlight = append(q.inFlight, p)
	return p
}

// nextIndex returns the index of the waiting payload to send next, or -1 if none can be sent now.
// Payloads with the fewest attempts come first, so that one which always fails does not delay the
// others. An origin has at most one payload in flight, so that its payloads arrive in order. If
// q.inOrder is true, all payloads are sent one at a time, oldest first. The caller holds the lock.
func (q *queue) nextIndex() int {
	if q.inOrder {
		if len(q.waiting) == 0 || len(q.inFlight) > 0 {
			return -1
		}
		return 0
	}
	best := -1
	for i, p := range q.waiting {
		isBetter := best < 0 || p.tries < q.waiting[best].tries
		if isBetter && !q.isOriginInFlight(p.Origin) {
			best = i
		}
	}
	return best
}

// isOriginInFlight reports whether a payload of an origin is in flight. The caller holds the lock.
func (q *queue) isOriginInFlight(o span.Origin) bool {
	return slices.ContainsFunc(q.inFlight, func(p *Payload) bool { return p.Origin == o })
}

// bytesAvailable returns the maximum length of a payload that can be sent now. It returns -1 if no
// payload can be sent, and no limit if no payload is in flight. The caller holds the lock.
func (q *queue) bytesAvailable() int {
	if len(q.inFlight) == 0 {
		return math.MaxInt
	}
	if len(q.inFlight) >= maxDeliveries {
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
	expiredCount := 0
	for expiredCount < len(q.waiting) && !q.waiting[expiredCount].born.After(t) {
		expiredCount++
	}
	return q.remove(0, expiredCount)
}

// drain removes and returns all waiting payloads.
func (q *queue) drain() []*Payload {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(0, len(q.waiting))
}

// oldestWaiting returns the creation time of the oldest waiting payload. It returns false if no
// payload is waiting.
func (q *queue) oldestWaiting() (born time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return time.Time{}, false
	}
	return q.waiting[0].born, true
}

// oldest returns the creation time of the oldest payload, waiting or in flight. It returns false if
// the queue contains no payload.
func (q *queue) oldest() (born time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		born, ok = q.waiting[0].born, true
	}
	for _, p := range q.inFlight {
		if !ok || p.born.Before(born) {
			born, ok = p.born, true
		}
	}
	return born, ok
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

// remove removes and returns a range of the waiting payloads. The caller holds the lock.
func (q *queue) remove(from, to int) []*Payload {
	removed := slices.Clone(q.waiting[from:to])
	for _, p := range removed {
		q.bytes -= len(p.Body)
	}
	q.waiting = slices.Delete(q.waiting, from, to)
	return removed
}
