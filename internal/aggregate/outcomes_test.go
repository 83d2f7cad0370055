package aggregate

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// TestCyclesAreSettledFromTheFirstOn: outcomes come in any order, also ones that are no
// success, and what is settled is always what has no gap before it.
func TestCyclesAreSettledFromTheFirstOn(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	a := &Aggregator{outcomes: newOutcomes()}
	had := map[uint64]bool{}
	for _, cycle := range rnd.Perm(200) {
		number := uint64(cycle)
		before, changed := a.Settled()
		delivery := NewDelivery()
		delivery.settled = func() { a.outcomes.add(number) }
		delivery.Resolve(errors.New("refused"))
		had[number] = true
		want := uint64(0)
		for had[want] {
			want++
		}
		got, _ := a.Settled()
		select {
		case <-changed:
			if got == before {
				t.Fatalf("said to have changed, from %d to %d", before, got)
			}
		default:
			if got != before {
				t.Fatalf("changed from %d to %d, and nobody was told", before, got)
			}
		}
		if got != want {
			t.Fatalf("settled before %d, want %d", got, want)
		}
	}
	if len(a.outcomes.ahead) != 0 {
		t.Errorf("%d cycles are still remembered", len(a.outcomes.ahead))
	}
}
