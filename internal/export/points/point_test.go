package points

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// The sum without errors is a difference of floats, and can be slightly below zero. A receiver
// would interpret a negative sum as a reset of the counter.
func TestSum_IsNeverNegative(t *testing.T) {
	var h sketch.Histogram
	c := testcycle.Cycle{Grid: sketch.CommonGrid()}
	c.Add(0, c.Key(c.Origin(span.Origin{Service: "web"}),
		span.Key{Service: "web", Operation: "op", Resource: "r"}), 0, 0, 0, 1)
	sealed := c.Seal()
	var m export.Merger
	rows := m.Merge(sealed)
	rows[0].ReadOK(&h)
	var p Point
	p.setCounts(&h, 1, -1e-9)
	if p.isEmpty() || p.Seconds != 0 {
		t.Errorf("a negative sum becomes %v seconds, want 0", p.Seconds)
	}
}
