package ingest

import (
	"sync/atomic"
	"time"
)

// throttle holds one connection to a number of bytes a second, by not reading:
// the tracer's socket fills up and its own buffer with it. A nil throttle lets
// everything through.
type throttle struct {
	rate   float64 // bytes a second
	credit float64 // may be negative: what was read beyond the rate
	last   time.Time
	lifted <-chan struct{} // when closed, nothing is put off any more
	delays *atomic.Uint64
}

func newThrottle(rate int, lifted <-chan struct{}, delays *atomic.Uint64) *throttle {
	if rate == 0 {
		return nil
	}
	// A second's worth may come at once.
	return &throttle{
		rate: float64(rate), credit: float64(rate), last: time.Now(), lifted: lifted,
		delays: delays,
	}
}

// spend notes n bytes that were read, and waits until the rate allows the next.
// It reports whether it had to wait.
func (t *throttle) spend(n int) (waited bool) {
	if t == nil {
		return false
	}
	now := time.Now()
	t.credit = min(t.rate, t.credit+now.Sub(t.last).Seconds()*t.rate) - float64(n)
	t.last = now
	if t.credit >= 0 {
		return false
	}
	t.delays.Add(1)
	select {
	case <-time.After(time.Duration(-t.credit / t.rate * float64(time.Second))):
	case <-t.lifted:
	}
	return true
}
