package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// TestAFloodAllocatesNothing: of no shape, once its labels are over their budgets; also
// where each of them must be mended. Long resources may take memory for mending, once a
// batch.
func TestAFloodAllocatesNothing(t *testing.T) {
	for _, shape := range workload.Shapes() {
		t.Run(shape, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { aFloodAllocatesNothing(t, shape) })
		})
	}
}

// aFloodAllocatesNothing runs where no interval ends meanwhile: the next one's labels would
// take memory again.
func aFloodAllocatesNothing(t *testing.T, shape string) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) {
		a.MaxAggregates = 64
		for l := range a.Budgets {
			a.Budgets[l] = 8
		}
	})
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "web", Lang: "go"})
	g, err := workload.New(workload.Flood(shape, 100), 1)
	if err != nil {
		t.Fatal(err)
	}
	batch, lists := make([]workload.Snapshot, 32), []*span.Batch(nil)
	for range 240 {
		g.Fill(batch, time.Now().UnixNano())
		list, _ := listed(bodyOf(len(batch), func(i int, frame []byte) []byte {
			return wire.AppendWhole(frame, wire.AppendKey(nil, batch[i].Key), 1000, batch[i].End, 0, 1)
		}))
		lists = append(lists, list)
	}
	publish := func() {
		if reason, ok := h.PublishTogether(func() {}, Part{p, lists[0]}); !ok {
			t.Fatalf("a batch was refused as %s", reason)
		}
		lists = lists[1:]
	}
	for len(lists) > 60 {
		publish()
	}
	if allocs := testing.AllocsPerRun(50, publish); allocs > 1 {
		t.Errorf("a batch allocates %g times", allocs)
	}
	h.stop(p)
}

// TestGroupsAreMendedBesideEachOther: what one was mended to is not written over by the next.
func TestGroupsAreMendedBesideEachOther(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Merge = true })
	p := h.NewPublisher(span.Origin{Service: "a"})
	width, groups := 10*time.Second, []aggregate.Group(nil)
	for _, resource := range []string{"one \xff", "two \xff"} {
		groups = append(groups, aggregate.Group{
			Key:     span.Key{Service: "shop", Operation: "web", Resource: resource},
			Mapping: sketch.OwnMapping, Bucket: time.Now().Truncate(width).UnixNano(), Counts: aggregate.Counts{Spans: 10, Hits: 10},
		})
	}
	if err := p.Merge(func() {}, groups, uint64(width), time.Now()); err != nil {
		t.Fatal(err)
	}
	_, keys := p.guard.Enter().Registry().Contents()
	p.guard.Exit()
	if len(keys) != 2 || keys[0].Key.Resource != "one \uFFFD" || keys[1].Key.Resource != "two \uFFFD" {
		t.Errorf("the rows are of %+v", keys)
	}
	h.finish(p)
}
