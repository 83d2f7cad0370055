package flush

import (
	"math/rand/v2"
	"time"
)

const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 30 * time.Second
)

// backoff is the pause between failures. It belongs to the way to the agent,
// not to a payload: when one cannot get through, the next cannot either.
type backoff struct {
	until    time.Time
	failures int
}

// over says whether the pause has ended.
func (b *backoff) over(now time.Time) bool { return !now.Before(b.until) }

// reset forgets past failures.
func (b *backoff) reset() { *b = backoff{} }

// extend begins a pause: twice as long with each failure in a row, less up to
// half at random, so that many daemons do not come back to one agent together;
// and never shorter than the agent asked for.
func (b *backoff) extend(now time.Time, atLeast time.Duration) {
	pause := longestPause
	if b.failures < 6 { // 500 ms doubled six times is past the longest
		pause = shortestPause << b.failures
	}
	b.failures++
	pause -= time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause, atLeast))
}
