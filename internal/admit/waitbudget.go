package admit

import "time"

// waitBudget is what a publisher has left of Config.WaitBudget: how long it may wait for
// room before it loses the batches that find none. A drainer that waits for a processor
// behind others is away for some milliseconds, and what a tracer has written meanwhile can
// as well stay in its socket. The budget comes back in ten times as long, so where
// drainers do not keep up at all, a connection waits for a tenth of its time and loses
// what it must.
type waitBudget struct {
	left time.Duration
	last time.Time // when that was
}

const budgetReturn = 10

// has says whether there is some left, of so much at most.
func (w *waitBudget) has(now time.Time, most time.Duration) bool {
	w.left = min(w.left+now.Sub(w.last)/budgetReturn, most)
	w.last = now
	return w.left > 0
}

// spend takes away what was waited since has.
func (w *waitBudget) spend(now time.Time) {
	w.left -= now.Sub(w.last)
	w.last = now
}
