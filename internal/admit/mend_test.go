package admit

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestGroupsAreMendedBesideEachOther: what one was mended to is not written over by the next.
func TestGroupsAreMendedBesideEachOther(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Merge = true })
	p := h.NewPublisher(span.Origin{Service: "a"})
	width, groups := 10*time.Second, []aggregate.Group(nil)
	for _, resource := range []string{"one \xff", "two \xff"} {
		groups = append(groups, aggregate.Group{
			Key:     span.Key{Service: "shop", Operation: "web", Resource: resource},
			Mapping: sketch.OwnMapping,
			Bucket:  time.Now().Truncate(width).UnixNano(),
			Counts:  aggregate.Counts{Spans: 10, Hits: 10},
		})
	}
	if err := p.Merge(func(uint64) {}, groups, uint64(width), time.Now()); err != nil {
		t.Fatal(err)
	}
	_, keys := p.guard.Enter().Registry().Contents()
	p.guard.Exit()
	if len(keys) != 2 || keys[0].Key.Resource != "one \uFFFD" || keys[1].Key.Resource != "two \uFFFD" {
		t.Errorf("the rows are of %+v", keys)
	}
	h.finish(p)
}
