package flush

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// shipment is all payloads of one sealed cycle. It keeps the cycle's promise
// when the last of them has its outcome.
type shipment struct {
	delivery *aggregate.Delivery
	flush    *Flush // what is remembered of it

	mu      sync.Mutex
	pending int
	err     error // of the first payload that failed
}

// add counts one more payload.
func (s *shipment) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending++
}

// settle notes the outcome of one payload.
func (s *shipment) settle(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.pending--
	done, first := s.pending == 0, s.err
	s.mu.Unlock()
	if done {
		s.delivery.Resolve(first)
	}
}
