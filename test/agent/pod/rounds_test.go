package main

import (
	"slices"
	"testing"
)

// TestRounds_Order checks that each side has each position equally often, and follows the same side at most
// half of the time.
func TestRounds_Order(t *testing.T) {
	for sides := 1; sides <= 5; sides++ {
		var places, follows [5][5]int
		for round := range 2 * sides {
			all := order(round, sides)
			if sorted := slices.Sorted(slices.Values(all)); len(sorted) != sides || sorted[0] != 0 ||
				len(slices.Compact(sorted)) != sides || sorted[sides-1] != sides-1 {
				t.Fatalf("%v are not %d sides", all, sides)
			}
			for place, side := range all {
				places[side][place]++
				if place > 0 {
					follows[side][all[place-1]]++
				}
			}
		}
		for side := range sides {
			for place := range sides {
				if places[side][place] != 2 {
					t.Errorf("with %d sides, side %d was %d times at place %d", sides, side, places[side][place], place)
				}
			}
			for _, times := range follows[side][:sides] {
				if sides > 2 && times > sides-1 {
					t.Errorf("with %d sides, side %d followed another %d times", sides, side, times)
				}
			}
		}
	}
}
