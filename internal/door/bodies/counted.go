package bodies

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// Counted holds the hashes of bodies that were counted, each from the moment it is
// counted until its sender is known to have an answer after which no sender sends it again.
// Without one it sends the body again, byte for byte, and perhaps while the first request is
// still under way; its spans must be counted once.
//
// mu guards all of it, and is held while a body is published: of two requests that bring
// the same body at the same time one is counted.
//
// The open ones are as many as there are connections at most. Of those that ended without such
// an answer the newest replaces the oldest, and none is known for longer than maxAge, so a sender
// that gives up leaves nothing behind.
type Counted struct {
	seed  maphash.Seed
	start time.Time

	mu         sync.Mutex
	open       map[uint64]int // requests under way, or answered and perhaps not read
	unanswered [maxUnanswered]uint64
	endedAt    [maxUnanswered]time.Duration // since the start
	next       int
}

// maxUnanswered is how many are held that ended: more than the tracers of a pod send in
// the time after which they try again.
const maxUnanswered = 1024

// maxAge is twice as long as anybody is known to try again: a Collector's exporter, five minutes.
const maxAge = 10 * time.Minute

func NewCounted() *Counted {
	return &Counted{seed: maphash.MakeSeed(), start: time.Now(), open: map[uint64]int{}}
}

// Sum tells bodies apart. 0 is none's.
func (b *Counted) Sum(body []byte) uint64 { return max(1, maphash.Bytes(b.seed, body)) }

// Once has a body published that was not counted before, and reports whether it was. Such
// a one is open, and so is one for which publish calls counted. Who opens a body closes it.
func (b *Counted) Once(sum uint64, publish func(counted func())) (before bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before = b.takeUnanswered(sum) || b.open[sum] > 0; before {
		b.open[sum]++
		return true
	}
	publish(func() { b.open[sum]++ })
	return false
}

// takeUnanswered removes a body that ended without an answer, and reports whether there
// was one: if it ends like that once more, it is added once more.
func (b *Counted) takeUnanswered(sum uint64) (found bool) {
	for at := slices.Index(b.unanswered[:], sum); at >= 0; at = slices.Index(b.unanswered[:], sum) {
		b.unanswered[at] = 0
		found = found || time.Since(b.start)-b.endedAt[at] < maxAge
	}
	return found
}

// Close ends a body's being open. One whose tracer does not have the answer is held on.
func (b *Counted) Close(sum uint64, hasAnswer bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[sum]--; b.open[sum] == 0 {
		delete(b.open, sum)
	}
	if !hasAnswer {
		b.unanswered[b.next], b.endedAt[b.next] = sum, time.Since(b.start)
		b.next = (b.next + 1) % maxUnanswered
	}
}

// Open is how many bodies are open.
func (b *Counted) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}
