package routing

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkRoute is what routing a batch of 64 costs a span: a bare look into a
// table, as it was before anything was balanced, and a Route, which notes demand
// too, with nothing split and with everything that can be.
func BenchmarkRoute(b *testing.B) {
	const batch = 64
	hashes := make([]uint32, 1<<12)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range hashes {
		hashes[i] = rnd.Uint32()
	}
	for _, partitions := range []int{128, 2048} {
		balancer := newTestBalancer(4, partitions)
		dealt := balancer.Routing()
		split := make([][]uint16, partitions)
		for p := range split {
			split[p] = dealt.Owners(p)
			if p < 3 {
				split[p] = []uint16{0, 1, 2, 3}
			}
		}
		var counts [4]int
		b.Run(fmt.Sprintf("%d/bare", partitions), func(b *testing.B) {
			for i := 0; b.Loop(); i += batch {
				for _, hash := range hashes[i&(len(hashes)-1)&^(batch-1):][:batch] {
					counts[dealt.owner[hash&dealt.mask]&3]++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/span")
		})
		for _, r := range []struct {
			name string
			*Routing
		}{{"whole", dealt}, {"split", dealt.WithOwners(split)}} {
			balancer.SetRouting(r.Routing)
			b.Run(fmt.Sprintf("%d/%s", partitions, r.name), func(b *testing.B) {
				route := balancer.NewRoute()
				for i := 0; b.Loop(); i += batch {
					route.Begin()
					hashes := hashes[i&(len(hashes)-1)&^(batch-1):][:batch]
					for _, hash := range hashes {
						counts[route.Drainer(hash)&3]++
					}
					route.CountLoad(hashes)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/span")
			})
		}
	}
}
