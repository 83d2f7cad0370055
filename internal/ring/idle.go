package ring

import "time"

const (
	// napTime is the length of a nap.
	napTime = time.Millisecond

	// The idle delay bounds a park. It is a net under the wake, so it is long.
	idleMin = 64 * time.Millisecond
	idleMax = time.Second
)

// sleep is what a consumer does that finds nothing.
type sleep uint8

const (
	park sleep = iota
	nap
)

// idle is how a consumer sleeps: naps while there is work, and then parks, of which each
// may last twice as long as the one before.
type idle struct {
	timer    *time.Timer
	delay    time.Duration // of the next park
	min, max time.Duration
	last     sleep
	worked   bool          // since that one
	before   sleep         // what came before it, where it is a nap
	backoffs [2]napBackoff // of naps, by what comes before
}

func newIdle(least, most time.Duration) *idle {
	timer := time.NewTimer(most)
	timer.Stop()
	return &idle{timer: timer, delay: least, min: least, max: most}
}

// work notes that there was some, after which the delay is short again.
func (i *idle) work() {
	i.delay = i.min
	i.worked = true
}

// next is the sleep that may begin now.
func (i *idle) next() sleep {
	if i.worked && i.backoffs[i.last].skip == 0 {
		return nap
	}
	return park
}

// begin starts the timer of a sleep.
func (i *idle) begin(s sleep) {
	if i.last == nap {
		i.backoffs[i.before].learn(i.worked)
	}
	switch {
	case s == nap:
		i.before = i.last
		i.timer.Reset(napTime)
	case i.worked:
		i.backoffs[i.last].skip--
		fallthrough
	default:
		i.timer.Reset(i.delay)
		i.delay = min(2*i.delay, i.max)
	}
	i.last, i.worked = s, false
}

// napBackoff says whether to nap. A nap that ends without work is a wake for nothing: a
// tracer that sends now and then, in one frame at a time, would cost two of them each. So
// the nap is left out once after such a one, then three times, and so on, until there was
// work in one.
type napBackoff struct{ skip, skips uint8 }

const maxSkips = 15

func (b *napBackoff) learn(worked bool) {
	if b.skips = min(2*b.skips+1, maxSkips); worked {
		b.skips = 0
	}
	b.skip = b.skips
}
