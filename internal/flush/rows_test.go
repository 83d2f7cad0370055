package flush

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestRowsAreApartByKeyBucketAndMapping counts twice each of two groups that differ in
// one of the three only, so that they are neighbours: each gets a row of its own.
func TestRowsAreApartByKeyBucketAndMapping(t *testing.T) {
	now := time.Now()
	one := aggregate.Group{
		Key:     span.Key{Resource: "a"},
		Bucket:  now.Truncate(testcycle.Width).UnixNano(),
		Mapping: sketch.OwnMapping,
		Counts:  aggregate.Counts{Spans: 1},
	}
	for name, change := range map[string]func(*aggregate.Group){
		"key":     func(g *aggregate.Group) { g.Key.Resource = "b" },
		"bucket":  func(g *aggregate.Group) { g.Bucket -= int64(testcycle.Width) },
		"mapping": func(g *aggregate.Group) { g.Mapping = sketch.Mapping{Gamma: 1.01} },
	} {
		other := one
		change(&other)
		var m Merger
		rows := m.Merge(testcycle.Merged(t, now, one, other, one, other))
		if len(rows) != 2 || rows[0].Spans != 2 || rows[1].Spans != 2 {
			t.Errorf("two groups that differ in their %s have %d rows, the first with %d spans", name,
				len(rows), rows[0].Spans)
		}
	}
}
