package registry

import (
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestGatesOnlyRise raises the gates of an origin in any order: each is as high as the highest
// that it was raised to, and shut once it was, and no other label's.
func TestGatesOnlyRise(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 20))
	for range 100 {
		var p publishedGates
		var want [span.LabelCount + 1]height
		for range 60 {
			l := span.Label(rnd.IntN(len(want)))
			to := height(rnd.IntN(int(repeated)+1)) | height(rnd.IntN(2))*noneKept
			want[l] = height(max(want[l].asks(), to.asks())) | want[l]&noneKept | to&noneKept
			p.raise(l, to)
			for l := range want {
				if got := p.load().of(span.Label(l)); got != want[l] {
					t.Fatalf("the gate of %s is %b, want %b", span.Label(l), got, want[l])
				}
			}
		}
	}
}
