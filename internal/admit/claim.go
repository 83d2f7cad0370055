package admit

import (
	"runtime"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// claimTries bounds how often a claim that only lost races is made again.
const claimTries = 8

// claim takes room for a run of the batch in its ring, unless that were more than this
// publisher's share of it. Where it finds none, leave skips what was claimed on others.
func (p *Publisher) claim(drainer int) Drop {
	run, aggregator := &p.batch.runs[drainer], p.shared.config.Aggregator
	n := run.slots
	switch {
	case n == 0:
		return admitted
	case n > aggregator.RingSlots():
		return DropBatchTooLarge
	}
	r := aggregator.Ring(drainer)
	if alone := p.shared.isAlone(); !p.shares[drainer].allows(r, n, alone) {
		if alone {
			return DropRingFull // but for the room that the next one finds
		}
		return DropOverShare
	}
	claim, result := r.Claim(n)
	for tries := 1; result == ring.Contended && tries < claimTries; tries++ {
		runtime.Gosched()
		claim, result = r.Claim(n)
	}
	switch result {
	case ring.Full:
		return DropRingFull
	case ring.Contended:
		return DropRingContended
	}
	run.claim = claim
	return admitted
}
