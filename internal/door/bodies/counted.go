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
// that gives up leaves nothing behind. The same holds, apart from them, for those with an answer of
// which nothing shows whether it was read.
type Counted struct {
	seed  maphash.Seed
	start time.Time

	mu         sync.Mutex
	open       map[uint64]int // requests under way, or answered and perhaps not read
	unanswered ended
	unseen     ended // answered, and perhaps not read
}

// ended are bodies that are known for a while.
type ended struct {
	sums [maxUnanswered]uint64
	at   [maxUnanswered]time.Duration // since the start
	next int
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
	now := time.Since(b.start)
	isKnown := b.unanswered.take(sum, now)
	isKnown = b.unseen.take(sum, now) || isKnown
	if before = isKnown || b.open[sum] > 0; before {
		b.open[sum]++
		return true
	}
	publish(func() { b.open[sum]++ })
	return false
}

// take removes a body, and reports whether there was one: if it ends like that once more, it is
// added once more.
func (e *ended) take(sum uint64, now time.Duration) (found bool) {
	for at := slices.Index(e.sums[:], sum); at >= 0; at = slices.Index(e.sums[:], sum) {
		e.sums[at] = 0
		found = found || now-e.at[at] < maxAge
	}
	return found
}

func (e *ended) add(sum uint64, now time.Duration) {
	e.sums[e.next], e.at[e.next] = sum, now
	e.next = (e.next + 1) % maxUnanswered
}

// Close ends a body's being open. One whose tracer does not have the answer is held on.
func (b *Counted) Close(sum uint64, hasAnswer bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close(sum)
	if !hasAnswer {
		b.unanswered.add(sum, time.Since(b.start))
	}
}

// CloseUnseen does the same of one that was answered, where nothing shows whether its sender read
// that: over HTTP/2 it may give a request up while the answer is on its way.
func (b *Counted) CloseUnseen(sum uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.close(sum)
	b.unseen.add(sum, time.Since(b.start))
}

func (b *Counted) close(sum uint64) {
	if b.open[sum]--; b.open[sum] == 0 {
		delete(b.open, sum)
	}
}

// Open is how many bodies are open.
func (b *Counted) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}
