package aggregate

import "math/rand/v2"

// Shake gives partitions other owners at random, spreads some, and now and then
// changes their number. The balancer must not be at work.
func (a *Aggregator) Shake(rnd *rand.Rand) {
	now := a.balancer.Routing()
	next := anyRouting(rnd, now.Partitions(), now.drainers)
	if rnd.IntN(4) == 0 {
		next = next.resized(1 << rnd.IntN(8))
	}
	next.epoch = now.epoch + 1
	a.balancer.install(next)
}

// Seal seals now, past the spacing that Report keeps.
func (a *Aggregator) Seal() {
	answer := make(chan Reported, 1)
	a.sealer.requests <- answer
	<-answer
}
