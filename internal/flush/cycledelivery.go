package flush

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// cycleDelivery resolves the delivery of one sealed cycle when the last of its
// payloads has an outcome, of all destinations.
type cycleDelivery struct {
	delivery *aggregate.Delivery

	mu      sync.Mutex
	pending int
	err     error // the first failure of any destination
}

// add counts one more payload.
func (c *cycleDelivery) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
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
	c.fail(err)
	c.mu.Lock()
	c.pending--
	last, first := c.pending == 0, c.err
	c.mu.Unlock()
	if last {
		c.delivery.Resolve(first)
	}
}
