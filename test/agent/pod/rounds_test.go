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
			for place, one := range all {
				places[one][place]++
				if place > 0 {
					follows[one][all[place-1]]++
				}
			}
		}
		for one := range sides {
			for place := range sides {
				if places[one][place] != 2 {
					t.Errorf("of %d sides %d was %d times at place %d", sides, one, places[one][place], place)
				}
			}
			for _, times := range follows[one][:sides] {
				if sides > 2 && times > sides-1 {
					t.Errorf("of %d sides %d followed another %d times", sides, one, times)
				}
			}
		}
	}
}
