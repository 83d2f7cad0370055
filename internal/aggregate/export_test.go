package aggregate

import (
	"math/rand/v2"
	"time"
)

// Reroute gives partitions other owners at random, splits some, and now and then
// makes more of them. The balancer must not be at work.
func (a *Aggregator) Reroute(rnd *rand.Rand) {
	now := a.balancer.Routing()
	next := now.WithOwners(anyOwners(rnd, now.Partitions(), a.Drainers()))
	if rnd.IntN(4) == 0 && next.Partitions() < 128 {
		next = next.Subdivide(2 * next.Partitions())
	}
	a.balancer.SetRouting(next)
}

// anyOwners are drainers for each partition, several for one in eight.
func anyOwners(rnd *rand.Rand, partitions, drainers int) [][]uint16 {
	owners := make([][]uint16, partitions)
	for p := range owners {
		for _, drainer := range rnd.Perm(drainers)[:1+rnd.IntN(8)/7*rnd.IntN(drainers)] {
			owners[p] = append(owners[p], uint16(drainer))
		}
	}
	return owners
}

// Started returns the time at which the cycle began.
func (c *Cycle) Started() time.Time { return c.started }

// Seal waits for the seal that a report gets.
func (a *Aggregator) Seal() { <-a.sealer.requests.pendingOrNew().completed }
