package flush

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// cycleDelivery resolves the delivery of one sealed cycle when the last of its
// payloads has an outcome.
type cycleDelivery struct {
	delivery *aggregate.Delivery
	flush    *Flush // the cycle's line in the history

	mu      sync.Mutex
	pending int
	err     error // of the first payload that failed
}

// add counts one more payload.
func (c *cycleDelivery) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
}

// resolve notes the outcome of one payload.
func (c *cycleDelivery) resolve(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.pending--
	last, first := c.pending == 0, c.err
	c.mu.Unlock()
	if last {
		c.delivery.Resolve(first)
	}
}
