package points

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// TestASumIsNeverNegative: what spans with an error took is taken from what all did, and floats
// may make a little less than nothing of it. A receiver takes that for a counter that began anew.
func TestASumIsNeverNegative(t *testing.T) {
	var h sketch.Histogram
	c := testcycle.Cycle{Grid: sketch.CommonGrid()}
	c.Add(0, c.Key(c.Origin(span.Origin{Service: "web"}),
		span.Key{Service: "web", Operation: "op", Resource: "r"}), 0, 0, 0, 1)
	sealed := c.Seal()
	var m export.Merger
	rows := m.Merge(sealed)
	rows[0].ReadOK(&h)
	var p Point
	if !p.count(&h, 1, -1e-9) || p.Seconds != 0 {
		t.Errorf("a span that took less than nothing has a sum of %v", p.Seconds)
	}
}
