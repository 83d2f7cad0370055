package flush

import (
	"math/rand/v2"
	"time"
)

const (
	shortestPause = 500 * time.Millisecond
	longestPause  = 30 * time.Second
)

// backoff is the pause after failures. It belongs to the connection to a destination, not to a payload:
// when one payload can't be delivered, the next can't be either.
//
// Several deliveries begin between two pauses, and when the destination becomes unavailable all of them
// fail. That counts as one failure: a delivery that began before the present pause says nothing about what
// comes after it, except how long the destination asks us to wait.
type backoff struct {
	until    time.Time
	failures int // in a row
	pauses   int // so far; a delivery remembers how many there were when it began
}

// over reports whether the pause has ended.
func (b *backoff) over(now time.Time) bool { return !now.Before(b.until) }

// extend begins a pause: twice as long with each failure in a row, less up to half at random, so that many
// daemons do not return to one destination at the same time; never shorter than the destination asked for.
func (b *backoff) extend(now time.Time, atLeast time.Duration, began int) {
	if began != b.pauses {
		if until := now.Add(atLeast); until.After(b.until) && atLeast > 0 {
			b.until = until
		}
		return
	}
	pause := longestPause
	if b.failures < 6 { // 500 ms doubled six times is past the longest
		pause = shortestPause << b.failures
	}
	b.failures++
	b.pauses++
	pause -= time.Duration(rand.Int64N(int64(pause / 2)))
	b.until = now.Add(max(pause, atLeast))
}

// succeeded records that the destination accepted a delivery that began after so many pauses.
func (b *backoff) succeeded(began int) {
	if began == b.pauses {
		b.end()
	}
}

// end ends the pause and resets the failures.
func (b *backoff) end() { b.until, b.failures = time.Time{}, 0 }
