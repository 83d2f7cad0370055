package ring

import "time"

// The idle delay bounds one sleep. Of a nap it is the length; behind that it is a
// net under the wake, so it is long.
const (
	idleMin = time.Millisecond
	idleMax = time.Second
)

// idle is how a consumer sleeps while it finds nothing: a nap if there was work,
// and then parks of which each may last twice as long as the one before.
type idle struct {
	timer    *time.Timer
	delay    time.Duration
	min, max time.Duration
	worked   bool // since the last sleep began
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

// arm starts the timer of a sleep and doubles the delay of the one after it.
func (i *idle) arm() {
	i.timer.Reset(i.delay)
	i.delay = min(2*i.delay, i.max)
	i.worked = false
}
