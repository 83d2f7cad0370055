package admit

import (
	"runtime"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// claimTries bounds how often a claim that only lost races is made again.
const claimTries = 8

// claimAll claims room for each run of the batch. Where one finds none, leave skips what
// was claimed before.
func (p *Publisher) claimAll() Drop {
	for drainer := range p.batch.runs {
		if n := p.batch.runs[drainer].slots; n > 0 {
			if reason := p.claim(drainer, n); reason != admitted {
				return reason
			}
		}
	}
	return admitted
}

// claim takes room for n slots in one ring, unless that were more than this publisher's
// share of it.
func (p *Publisher) claim(drainer, n int) Drop {
	aggregator := p.shared.config.Aggregator
	if n > aggregator.RingSlots() {
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
	p.batch.runs[drainer].claim = claim
	return admitted
}
