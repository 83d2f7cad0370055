package flush

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestRowsAreApartByKeyBucketAndMapping counts twice each of two groups that differ in
// one of the three only, so that they are neighbours: each gets a row of its own.
func TestRowsAreApartByKeyBucketAndMapping(t *testing.T) {
	now := time.Now()
	one := aggregate.Group{
		Key: span.Key{Resource: "a"}, Bucket: now.Truncate(width).UnixNano(), Mapping: sketch.OwnMapping,
		Counts: aggregate.Counts{Spans: 1},
	}
	for name, change := range map[string]func(*aggregate.Group){
		"key":     func(g *aggregate.Group) { g.Key.Resource = "b" },
		"bucket":  func(g *aggregate.Group) { g.Bucket -= int64(width) },
		"mapping": func(g *aggregate.Group) { g.Mapping = sketch.Mapping{Gamma: 1.01} },
	} {
		other := one
		change(&other)
		var m merger
		rows := m.merge(sealedOf(t, now, one, other, one, other))
		if len(rows) != 2 || rows[0].Spans != 2 || rows[1].Spans != 2 {
			t.Errorf("two groups that differ in their %s have %d rows, the first with %d spans", name, len(rows), rows[0].Spans)
		}
	}
}

// TestTheAgentCanFoldNoGroups: groups of one bucket that differ in nothing but their type
// or their mapping lie in buckets of their own, or it would add up what is apart.
func TestTheAgentCanFoldNoGroups(t *testing.T) {
	one := row{parts: []part{{key: &span.Key{Type: "web"}}}}
	for what, change := range map[string]func(*part){
		"bucket":  func(p *part) { p.Bucket++ },
		"mapping": func(p *part) { p.Mapping++ },
		"type":    func(p *part) { p.key = &span.Key{Type: "db"} },
	} {
		other := row{parts: []part{one.parts[0]}}
		if !sameBucket(&one, &other) {
			t.Fatal("equal groups have a bucket each")
		}
		change(&other.parts[0])
		if sameBucket(&one, &other) {
			t.Errorf("groups that differ in their %s share a bucket", what)
		}
	}
}

// sealedOf is a cycle in which nothing but these groups was merged.
func sealedOf(t *testing.T, now time.Time, groups ...aggregate.Group) (sealed *aggregate.Sealed) {
	t.Helper()
	config := aggregate.DefaultConfig()
	config.Merge, config.Deliver = true, func(s *aggregate.Sealed) { sealed = s }
	a, err := aggregate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	guard := a.NewGuard()
	cycle := guard.Enter()
	origin, _ := cycle.AdmitOrigin(span.Origin{})
	merging := cycle.Merging()
	if err := merging.Reserve(groups, uint64(width), now); err != nil {
		t.Fatal(err)
	}
	for i := range groups {
		merging.Add(origin, &groups[i])
	}
	merging.End()
	guard.Exit()
	a.Start()
	a.Stop()
	return sealed
}
