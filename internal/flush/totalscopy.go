package flush

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// copies is what a destination of running totals knows of cycles.
//
// The payloads of one cycle are a copy of all totals, so they say what those of every
// cycle before said. When a copy has arrived whole, all spans up to its cycle have their
// outcome. A copy that lacks a payload settles nothing: the next one says that too. So at
// most one copy waits, and what is given up of it is not lost, only later.
//
// Who waits for a cycle is not kept waiting for that. It is told of the first payload that
// was given up, and after the retry age that nothing has arrived yet.
//
// Who accepts and the sender use it, under its lock.
type copies struct {
	retryAge time.Duration

	mu     sync.Mutex
	newest uint64      // number of a copy
	open   []openCycle // cycles with spans that have no outcome yet, oldest first, maxWaiting of them
}

// openCycle is a cycle with spans that are not settled yet.
type openCycle struct {
	delivery   *cycleDelivery
	copy       uint64 // the first that says its spans
	born       time.Time
	isAnswered bool
}

// totalsCopy is the payloads of one cycle.
type totalsCopy struct {
	of      *copies
	number  uint64
	pending int  // payloads without an outcome, and one more while they are made; guarded by copies.mu
	lacks   bool // one of them did not arrive; so is this
}

var (
	errNotYet = errors.New("the destination does not have its spans yet; " +
		"they are held, and are in each payload that follows")
	errTooMany = errors.New("too many cycles wait for the destination")
)

// begin begins the copy of a cycle, which is added to those without an outcome if it has
// spans.
func (c *copies) begin(delivery *cycleDelivery, spans uint64, now time.Time) *totalsCopy {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest++
	if spans > 0 {
		delivery.add()
		c.open = append(c.open, openCycle{delivery: delivery, copy: c.newest, born: now})
	}
	for i := range c.open {
		if now.Sub(c.open[i].born) >= c.retryAge {
			c.open[i].answer(errNotYet)
		}
	}
	c.settle(max(0, len(c.open)-maxWaiting), errTooMany)
	return &totalsCopy{of: c, number: c.newest, pending: 1}
}

// end settles all cycles that are left, when nothing is sent any more.
func (c *copies) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(len(c.open), err)
}

// arrive settles the cycles that a copy says, when it has arrived whole.
func (c *copies) arrive(number uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle(c.upTo(number), nil)
}

// saidBy is the cycles without an outcome that a copy says.
func (c *copies) saidBy(number uint64) (said cycleDeliveries) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open[:c.upTo(number)] {
		said = append(said, o.delivery)
	}
	return said
}

// oldest is when the oldest cycle with spans that have no outcome was sealed, false where
// there is none.
func (c *copies) oldest() (born time.Time, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return time.Time{}, false
	}
	return c.open[0].born, true
}

// settle settles the oldest cycles. The caller holds the lock, as for the next two.
func (c *copies) settle(cycles int, err error) {
	for i := range cycles {
		c.open[i].answer(err)
		c.open[i].delivery.settle()
	}
	c.open = slices.Delete(c.open, 0, cycles)
}

// upTo is how many cycles a copy says the spans of.
func (c *copies) upTo(number uint64) (cycles int) {
	for cycles < len(c.open) && c.open[cycles].copy <= number {
		cycles++
	}
	return cycles
}

func (o *openCycle) answer(err error) {
	if !o.isAnswered {
		o.isAnswered = true
		o.delivery.answer(err)
	}
}

// add counts one more payload.
func (t *totalsCopy) add() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.pending++
}

// resolve notes that a payload has arrived, and what of it was left out.
func (t *totalsCopy) resolve(err error) { t.conclude(err, true) }

// miss notes that a payload will not be sent, and why, where no newer one has its place.
func (t *totalsCopy) miss(err error) { t.conclude(err, false) }

func (t *totalsCopy) conclude(err error, hasArrived bool) {
	c := t.of
	c.mu.Lock()
	defer c.mu.Unlock()
	t.pending--
	t.lacks = t.lacks || !hasArrived
	cycles := c.upTo(t.number)
	if err != nil {
		for i := range cycles {
			c.open[i].answer(err)
		}
	}
	if t.pending == 0 && !t.lacks {
		c.settle(cycles, nil)
	}
}

// isNewest says whether no newer copy was begun.
func (t *totalsCopy) isNewest() bool {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.number == t.of.newest
}
