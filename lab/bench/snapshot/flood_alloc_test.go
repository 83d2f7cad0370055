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

// TestFlood_AllocatesNothing: a flood of any shape allocates nothing once its labels are over their budgets, except
// a few times for each label that has to be rewritten.
func TestFlood_AllocatesNothing(t *testing.T) {
	for _, shape := range workload.Shapes() {
		t.Run(shape, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { aFloodAllocatesNothing(t, shape) })
		})
	}
}

// aFloodAllocatesNothing uses an interval that does not end during the test: labels of a new
// interval would be allocated again.
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
	rewrites := 0 // maximum number of labels per batch
	for range 240 {
		list, n := timed.list(timedBatch)
		lists, rewrites = append(lists, list), max(rewrites, n)
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
	const perRewrite = 4
	if allocs := testing.AllocsPerRun(50, publish); allocs > float64(1+perRewrite*rewrites) {
		t.Errorf("a batch allocates %g times, and has %d labels to rewrite", allocs, rewrites)
	}
	p.Close()
	timed.aggregator.Stop()
	if stats := timed.aggregator.Stats(); stats.Aggregated() != timed.taken() || stats.Pending != 0 {
		t.Errorf("%d spans were taken, %d counted and %d are held", timed.taken(), stats.Aggregated(),
			stats.Pending)
	}
}

// toRewrite returns the number of a key's labels that are not in normal form.
func toRewrite(k *span.Key) (n int) {
	for l := range span.FirstList {
		if !l.IsNormal(*k.Text(l)) {
			n++
		}
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		for _, tag := range *k.Tags(l) {
			if !l.IsNormal(tag) {
				n++
			}
		}
	}
	return n
}

// list returns the next snapshots of the workload as a receiver counts them, and the number of labels to rewrite.
func (t *timed) list(snapshots int) (b *span.Batch, rewrites int) {
	all := make([]workload.Snapshot, snapshots)
	t.gen.Fill(all, time.Now().UnixNano())
	b = &span.Batch{}
	b.Labeler = &labeler{b, &t.key}
	for i := range all {
		s, from := &all[i], len(b.Fingerprints)
		rewrites += toRewrite(s.Key)
		b.Fingerprints = wire.AppendKey(b.Fingerprints, s.Key)
		b.Snapshots = append(b.Snapshots, span.Snapshot{
			Fingerprint:    uint32(from),
			FingerprintEnd: uint32(len(b.Fingerprints)),
			Duration:       s.Duration,
			End:            s.End,
			Weight:         1,
			Span:           uint32(i),
			Flags:          s.Flags,
		})
	}
	return b, rewrites
}

// labeler reads the keys of a batch whose fingerprints are keys in the native protocol.
type labeler struct {
	batch *span.Batch
	key   *span.Key
}

func (l *labeler) Label(number uint32) *span.Key {
	if err := wire.ReadKey(l.key, l.batch.FingerprintOf(&l.batch.Snapshots[number])); err != nil {
		panic(err)
	}
	return l.key
}
