package flush

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// cycleDelivery resolves the delivery of one sealed cycle when the last of its
// payloads has an outcome, of all destinations. A destination of running totals counts as
// one payload; it may answer before the spans of the cycle have theirs.
type cycleDelivery struct {
	delivery *aggregate.Delivery

	mu         sync.Mutex
	unanswered int   // payloads of which who waits is not told yet
	unsettled  int   // payloads whose spans have no outcome yet
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
