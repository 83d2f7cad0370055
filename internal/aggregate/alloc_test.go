//go:build !race

package aggregate

import (
	"testing"
	"time"
)

// TestAllocations_ReusedTable: the second cycle in a table's memory sets
// nothing aside. (The race detector's own bookkeeping allocates.)
func TestAllocations_ReusedTable(t *testing.T) {
	table := newTestTable(100)
	now := time.Unix(1000, 0)
	fillTable(table, now)
	if n := testing.AllocsPerRun(5, func() { table.Reset(); fillTable(table, now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
