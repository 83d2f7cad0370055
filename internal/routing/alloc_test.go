//go:build !race

package routing

import "testing"

// TestAllocations_Route: a batch that is routed and offered sets nothing aside,
// split or not.
func TestAllocations_Route(t *testing.T) {
	b := newTestBalancer(4, 16)
	owners := make([][]uint16, 16)
	for p := range owners {
		owners[p] = []uint16{uint16(p % 4), uint16((p + 1) % 4)}
	}
	b.SetRouting(b.Routing().WithOwners(owners))
	route := b.NewRoute()
	hashes := make([]uint32, 1024)
	batch := func() {
		route.Begin()
		for hash := range hashes {
			hashes[hash] = uint32(hash)
			route.Drainer(uint32(hash))
		}
		route.CountLoad(hashes)
	}
	if n := testing.AllocsPerRun(100, batch); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
