package flush

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// cycleDelivery resolves the delivery of one sealed cycle when the last of its
// payloads has an outcome, of all destinations. A destination of running totals counts as
// one payload; it may answer before the spans of the cycle have theirs.
//
// Until then the cycle is doubtful while anything that says its spans is under way, and for
// good once a destination has taken some of them, or may have: who finds this process killed
// must not count them again.
type cycleDelivery struct {
	delivery *aggregate.Delivery

	mu         sync.Mutex
	unanswered int   // payloads of which who waits is not told yet
	unsettled  int   // payloads whose spans have no outcome yet; none: it is settled
	underWay   int   // payloads, and readers of what is fetched, that say its spans
	isTaken    bool  // a destination has some of its spans, or may
	isDoubtful bool  // was said last
	err        error // the first failure of any destination
}

// add counts one more payload.
func (c *cycleDelivery) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unanswered++
	c.unsettled++
}

// fail notes that a destination will not get all of the cycle.
func (c *cycleDelivery) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// resolve notes the outcome of one payload.
func (c *cycleDelivery) resolve(err error) {
	c.answer(err)
	c.settle()
}

// answer notes what who waits is told of one payload.
func (c *cycleDelivery) answer(err error) {
	c.fail(err)
	c.mu.Lock()
	c.unanswered--
	last, first := c.unanswered == 0, c.err
	c.mu.Unlock()
	if last {
		c.delivery.Answer(first)
	}
}

// settle notes that the spans of one payload have their outcome, behind its answer.
func (c *cycleDelivery) settle() {
	c.mu.Lock()
	c.unsettled--
	last := c.unsettled == 0
	c.mu.Unlock()
	if last {
		c.delivery.Settle()
	}
}

// cycleDeliveries are those of the cycles whose spans something under way says.
type cycleDeliveries []*cycleDelivery

// leave notes that it is about to be sent.
func (all cycleDeliveries) leave() {
	for _, c := range all {
		c.move(1, false)
	}
}

// returned notes that it was, and whether the destination has it, or may.
func (all cycleDeliveries) returned(isTaken bool) {
	for _, c := range all {
		c.move(-1, isTaken)
	}
}

// move tells of doubt under the lock, so that changes come in order, and none behind the end.
func (c *cycleDelivery) move(underWay int, isTaken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.underWay += underWay
	c.isTaken = c.isTaken || isTaken
	if is := c.underWay > 0 || c.isTaken; is != c.isDoubtful && c.unsettled > 0 {
		c.isDoubtful = is
		c.delivery.Doubt(is)
	}
}
