package client

import (
	"math/rand/v2"
	"time"
)

const minBackoff = 50 * time.Millisecond

// backoff is the pauses between attempts to connect: a random part of a span
// that doubles, so that the tracers of a pod do not all knock at once when their
// daemon is back.
type backoff struct {
	most     time.Duration
	failures int
}

// next is how long to wait after one more failure.
func (b *backoff) next() time.Duration {
	limit := b.limit()
	b.failures++
	return rand.N(limit) + 1
}

func (b *backoff) limit() time.Duration {
	limit := min(minBackoff, b.most)
	for i := 0; i < b.failures && limit < b.most; i++ {
		limit *= 2
	}
	return min(limit, b.most)
}

// reset begins anew, after a connection that lasted longer than the longest
// pause: a daemon that takes connections and ends them at once is no success.
func (b *backoff) reset(lasted time.Duration) {
	if lasted > b.most {
		b.failures = 0
	}
}
