package registry_test

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestTagBudget_OwnBudget checks that a tag whose values each occur once gets half of its own budget,
// in whichever list it is, and another tag half of the budget of its list.
func TestTagBudget_OwnBudget(t *testing.T) {
	for list := span.FirstList; list < span.EndOfLists; list++ {
		for name, budget := range map[string]int{"tenant.id": 8, "wide": 400, "other": list.Budget()} {
			r, origin := one(t, func(c *registry.Config) {
				c.LimitTag("tenant.id", 3)
				c.LimitTag("tenant.id", 8) // the larger one holds
				c.LimitTag("wide", 400)
			})
			for i := range 1000 {
				key := resource("x")
				*key.Tags(list) = []string{fmt.Sprintf("%s:%d", name, i)}
				r.Admit(origin, key)
			}
			// and the row of those that found no place
			if rows := len(rowsOf(r)); rows != budget/2+1 {
				t.Errorf("%s %s: %d rows, want %d", list, name, rows, budget/2+1)
			}
		}
	}
	config := testConfig()
	config.LimitTag("tenant.id", 0)
	if config.Check() == nil {
		t.Error("an empty budget is accepted")
	}
}
