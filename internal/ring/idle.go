package ring

import (
	"runtime"
	"time"
)

const (
	// busy is how many slots between two waits make a consumer expect more at
	// once, so that it pauses instead of giving up its processor.
	busy = 64
	// pause is how many multiplications the pause takes, some four microseconds.
	pause = 4096
	// yields is how often an idle consumer lets other goroutines run before it
	// parks.
	yields = 16

	// The idle delay bounds one park. It is a net under the wake, so it is long;
	// it starts short because a consumer that has just had work is worth a look.
	idleMin = time.Millisecond
	idleMax = time.Second
)

// idle is how a consumer spends the time in which it finds nothing: a pause if
// it was busy, some yields, and then parks of which each may last twice as long
// as the one before.
//
// The pause is what makes a busy ring fast. A consumer that keeps up looks at
// the very words and slots that producers write at that moment, and each look
// takes a cache line from under them. One that turns away for the time of a few
// dozen runs finds them all at once, on lines that nobody needs any more. For a
// consumer with little to do it would only be waste, and on a single processor
// it would keep the producers from theirs.
type idle struct {
	timer    *time.Timer
	delay    time.Duration
	min, max time.Duration
	taken    uint64 // slots since the last wait began
	yielded  int
	alone    bool // there is one processor only
	product  uint64
}

func newIdle(least, most time.Duration) *idle {
	timer := time.NewTimer(most)
	timer.Stop()
	return &idle{timer: timer, delay: least, min: least, max: most, alone: runtime.GOMAXPROCS(0) == 1}
}

// work notes that there was some, after which the patience is fresh.
func (i *idle) work(slots uint64) {
	i.delay = i.min
	i.yielded = 0
	i.taken += slots
}

// more spends a little time and is true, or is false when it is time to park.
func (i *idle) more() bool {
	switch {
	case i.taken >= busy && !i.alone:
		i.product = multiply(i.product)
	case i.yielded < yields:
		i.yielded++
		runtime.Gosched()
	default:
		return false
	}
	i.taken = 0
	return true
}

// multiply passes time without touching memory, which a processor can't hurry:
// each step needs the result of the one before.
//
//go:noinline
func multiply(x uint64) uint64 {
	for range pause {
		x = x*6364136223846793005 + 1
	}
	return x
}

// arm starts the timer of a park and doubles the delay of the one after it.
func (i *idle) arm() {
	i.timer.Reset(i.delay)
	i.delay = min(2*i.delay, i.max)
}
