package spantable_test

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Traces are numbered in the order in which they are added, and each keeps its number, however many share a
// slot.
func TestTraces_NumberedInOrder(t *testing.T) {
	var numbers spantable.TraceNumbers
	for _, n := range []int{3, 1000, 10} {
		numbers.Reset(n)
		for round := range 2 {
			for i := range n {
				if got := numbers.NumberOf(uint64(i%3), uint64(i)); got != i {
					t.Fatalf("round %d: trace %d of %d has the number %d", round, i, n, got)
				}
			}
		}
		if numbers.Len() != n {
			t.Fatalf("%d traces of %d", numbers.Len(), n)
		}
	}
}
