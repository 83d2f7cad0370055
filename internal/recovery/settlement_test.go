package recovery

import (
	"math/rand/v2"
	"testing"
)

// A publisher receives spans in random cycles, which settle late. The number of settled spans never
// exceeds the number of spans in settled cycles, never decreases, and includes all spans at the
// end.
func TestSettled_NeverMoreThanOutcomes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		s := NewSettlementTracker(nil)
		var byCycle []uint64 // spans received in each cycle
		given, through, settled, longest := uint64(0), uint64(0), uint64(0), uint64(0)
		pace := 1 + rnd.IntN(19) // with the smallest value, more cycles are unsettled than a record has marks
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
			now := s.SettleBefore(through)
			if now > most || now < settled {
				t.Fatalf("%d of %d spans are settled, after %d, where %d have had their outcome", now, given,
					settled, most)
			}
			if longest = max(longest, cycle-through); longest < rangesPerRecord && now != most {
				t.Fatalf("%d spans are settled, where %d have had their outcome in all but %d cycles", now,
					most,
					cycle-through)
			}
			settled = now
		}
		if all := s.SettleBefore(uint64(len(byCycle))); all != given {
			t.Fatalf("%d of %d spans are settled in the end", all, given)
		}
	}
}
