package recovery

import (
	"math/rand/v2"
	"testing"
)

// TestSettledIsNeverMoreThanHasHadItsOutcome gives spans to a publisher in cycles that it
// joins, or does not, and lets outcomes come late: what is settled never exceeds what lies
// in cycles with an outcome, never falls, and is all of it in the end.
func TestSettledIsNeverMoreThanHasHadItsOutcome(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		s := NewSettlementTracker(nil)
		var byCycle []uint64 // what was given in each
		given, through, settled, longest := uint64(0), uint64(0), uint64(0), uint64(0)
		pace := 1 + rnd.IntN(19) // with the least, more cycles wait for their outcomes than there are marks
		for range 100 {
			cycle := uint64(len(byCycle))
			byCycle = append(byCycle, 0)
			for range rnd.IntN(3) {
				s.EnterCycle(cycle)
				spans := rnd.Uint64N(100)
				s.Receive(spans)
				byCycle[cycle] += spans
				given += spans
			}
			if rnd.IntN(20) < pace && through < cycle {
				through += rnd.Uint64N(cycle - through + 1)
			}
			most := uint64(0)
			for _, spans := range byCycle[:through] {
				most += spans
			}
			now := s.SettledUpTo(through)
			if now > most || now < settled {
				t.Fatalf("%d of %d spans are settled, after %d, where %d have had their outcome", now, given,
					settled, most)
			}
			if longest = max(longest, cycle-through); longest < marks && now != most {
				t.Fatalf("%d spans are settled, where %d have had their outcome in all but %d cycles", now,
					most,
					cycle-through)
			}
			settled = now
		}
		if all := s.SettledUpTo(uint64(len(byCycle))); all != given {
			t.Fatalf("%d of %d spans are settled in the end", all, given)
		}
	}
}
