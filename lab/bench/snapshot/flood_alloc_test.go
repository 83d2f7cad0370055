package snapshot

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// TestAFloodAllocatesNothing: a flood of any shape allocates nothing once its labels are over
// their budgets, also where each of them must be mended. Long resources may take memory for
// mending, once a batch.
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
	config := counting()
	config.MaxAggregates = 64
	for l := range config.Budgets {
		config.Budgets[l] = 8
	}
	timed := &timed{b: t, gen: newGenerator(t, workload.Flood(shape, 100))}
	timed.startWith(config)
	p := timed.admit.NewPublisher(span.Origin{Service: "web", Lang: "go"})
	var lists []*span.Batch
	for range 240 {
		lists = append(lists, timed.list(timedBatch))
	}
	publish := func() {
		if reason, ok := timed.admit.PublishTogether(func() {},
			admit.BatchPart{Publisher: p, Batch: lists[0]}); !ok {
			t.Fatalf("a batch was refused as %s", reason)
		}
		lists = lists[1:]
	}
	for len(lists) > 60 {
		publish()
	}
	timed.settle()
	if allocs := testing.AllocsPerRun(50, publish); allocs > 1 {
		t.Errorf("a batch allocates %g times", allocs)
	}
	p.Close()
	timed.aggregator.Stop()
	if stats := timed.aggregator.Stats(); stats.Aggregated() != timed.taken() || stats.Held != 0 {
		t.Errorf("%d spans were taken, %d counted and %d are held", timed.taken(), stats.Aggregated(),
			stats.Held)
	}
}

// list is the next snapshots of the workload as somebody has counted them of a body.
func (t *timed) list(snapshots int) *span.Batch {
	all := make([]workload.Snapshot, snapshots)
	t.gen.Fill(all, time.Now().UnixNano())
	b := &span.Batch{}
	for i := range all {
		s, key := &all[i], len(b.Keys)
		b.Keys = wire.AppendKey(b.Keys, s.Key)
		b.Snapshots = append(b.Snapshots, span.Snapshot{
			Key:      uint32(key),
			KeyEnd:   uint32(len(b.Keys)),
			Duration: s.Duration,
			End:      s.End,
			Weight:   1,
			Flags:    s.Flags,
		})
	}
	return b
}
