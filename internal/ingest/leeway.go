package ingest

import "time"

// leeway is what a connection has left of Config.Leeway, how long it may wait for room
// before it loses the batches that find none. A drainer that waits for a processor behind
// others is away for some milliseconds, and what a tracer has written meanwhile can as
// well stay in its socket. It comes back in ten times as long, so where drainers do not
// keep up at all, a connection waits for a tenth of its time and loses what it must.
type leeway struct {
	left time.Duration
	last time.Time // when that was
}

const leewayReturn = 10

// has says whether there is some left, of so much at most.
func (l *leeway) has(now time.Time, most time.Duration) bool {
	l.left = min(l.left+now.Sub(l.last)/leewayReturn, most)
	l.last = now
	return l.left > 0
}

// spend takes away what was waited since has.
func (l *leeway) spend(now time.Time) {
	l.left -= now.Sub(l.last)
	l.last = now
}
