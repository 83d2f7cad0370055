package admit

import "github.com/spanstatsd/spanstatsd/internal/aggregate"

// Counted is a span of the batch that PublishTogether is about to publish, and the number of
// the cycle that it is counted in. Of one that is ignored the key is no row's. Only commit may ask.
func (p *Publisher) Counted(at int) (cycle uint64, slot *aggregate.Slot) {
	return p.settling.Cycle(), &p.batch.slots[at]
}

// Counting is how many spans of the batch that PublishTogether is about to publish are counted: all
// but those that are ignored. Only commit may ask.
func (p *Publisher) Counting() int { return len(p.batch.slots) - p.batch.ignored }

// Cycle is the number of the cycle that its spans are about to be counted in. Only commit may ask.
func (p *Publisher) Cycle() uint64 { return p.settling.Cycle() }
