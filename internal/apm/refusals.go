package apm

import (
	"hash/maphash"
	"slices"
	"sync"
)

// refusals holds the hashes of bodies that were counted and that the agent did not accept:
// it was overloaded, or went away after the connection was made. Tracers send those again,
// byte for byte, and their spans must be counted once. The newest hash replaces the oldest,
// so a tracer that gives up leaves nothing behind.
type refusals struct {
	seed maphash.Seed

	mu   sync.Mutex
	sums [maxRefusals]uint64
	next int
}

// maxRefusals is how many are held: more than a pod has tracers that try at
// a time.
const maxRefusals = 256

// sum tells bodies apart. 0 is none's.
func (r *refusals) sum(body []byte) uint64 { return max(1, maphash.Bytes(r.seed, body)) }

// add holds a body.
func (r *refusals) add(sum uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sums[r.next] = sum
	r.next = (r.next + 1) % maxRefusals
}

// take reports whether a body is held, and removes it: if it is refused once more, it is
// added once more.
func (r *refusals) take(sum uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.sums[:], sum)
	if at >= 0 {
		r.sums[at] = 0
	}
	return at >= 0
}
