package admit

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// never is a commit function that must not be called.
func never(t *testing.T) func() {
	return func() { t.Error("it was committed") }
}

// panics reports whether f panics.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// TestPanic_DropsBatchAsBug: a panic in Publish of a connection drops the batch as DropBug.
func TestPanic_DropsBatchAsBug(t *testing.T) {
	h := newHarness(t, nil)
	p := h.NewConnection(span.Origin{Service: "a"}, 0)
	perDrainer := p.batch.perDrainer
	p.batch.perDrainer = nil
	if !panics(func() { _ = p.Publish(body(3)) }) {
		t.Error("a publisher without runs did not panic")
	}
	p.batch.perDrainer = perDrainer
	if err := p.Publish(body(2)); err != nil {
		t.Error(err)
	}
	h.finish(p)
	if stats := h.Stats(); stats.Received != 5 || stats.Dropped["bug"] != 3 || h.counted() != 2 {
		t.Errorf("received %d, dropped %v, counted %d", stats.Received, stats.Dropped, h.counted())
	}
}

// TestPanic_BeforeCommit: if a later part panics before commit, no span of an earlier part is
// published, and all spans are left to the agent.
func TestPanic_BeforeCommit(t *testing.T) {
	h := newHarness(t, nil)
	a, b := h.NewPublisher(span.Origin{Service: "a"}), h.NewPublisher(span.Origin{Service: "b"})
	shares := b.shares
	b.shares = nil
	if !panics(func() { h.PublishTogether(never(t), BatchPart{a, batchOf(100)}, BatchPart{b, batchOf(50)}) }) {
		t.Error("a publisher without shares did not panic")
	}
	b.shares = shares
	if reason, ok := h.PublishTogether(func() {}, BatchPart{a, batchOf(1)}, BatchPart{b, batchOf(2)}); !ok {
		t.Errorf("the next was refused as %s", reason)
	}
	h.finish(a, b)
	in, counted := h.Stats(), h.counted()
	if in.Received != 153 || in.Dropped["left_to_agent"] != 150 || in.DroppedTotal() != 150 || counted != 3 {
		t.Errorf("received %d, dropped %v, counted %d", in.Received, in.Dropped, counted)
	}
}

// TestPanic_AfterCommit: after commit, all spans are counted; those that a panic keeps from
// the rings count as DropBug.
func TestPanic_AfterCommit(t *testing.T) {
	h := newHarness(t, nil)
	a, b := h.NewPublisher(span.Origin{Service: "a"}), h.NewPublisher(span.Origin{Service: "b"})
	committed := 0
	commit := func() {
		committed++
		a.batch.hasCollapsed, a.shared = true, nil // it fails after its own spans
	}
	if !panics(func() {
		h.PublishTogether(commit, BatchPart{a, batchOf(100)}, BatchPart{b, batchOf(50)})
	}) || committed != 1 {
		t.Errorf("it did not panic after %d commits", committed)
	}
	a.shared = h.Publishers
	h.finish(a, b)
	in, counted := h.Stats(), h.counted()
	if in.Received != 150 || in.Dropped["bug"] != 50 || in.DroppedTotal() != 50 || counted != 100 {
		t.Errorf("received %d, dropped %v, counted %d", in.Received, in.Dropped, counted)
	}
}

// TestPanic_WhileMerging: a panic in Merge drops the groups that are not merged yet as DropBug.
func TestPanic_WhileMerging(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Merge = true })
	p := h.NewPublisher(span.Origin{Service: "a"})
	width := 10 * time.Second
	groups := func() []aggregate.Group {
		all := make([]aggregate.Group, 3)
		for i := range all {
			all[i] = aggregate.Group{
				Mapping: sketch.AgentMapping,
				Bucket:  time.Now().Truncate(width).UnixNano(), Counts: aggregate.Counts{Spans: 10, Hits: 10},
			}
		}
		return all
	}
	if err := p.Merge(func(uint64) {}, groups(), uint64(width), time.Now()); err != nil {
		t.Errorf("three groups were refused: %v", err)
	}
	late := groups()
	commit := func(uint64) { late[1].Mapping = sketch.Mapping{Gamma: 1.5} }
	if !panics(func() { _ = p.Merge(commit, late, uint64(width), time.Now()) }) {
		t.Error("a mapping that was not reserved did not panic")
	}
	h.finish(p)
	in, counted := h.Stats(), h.counted()
	if in.Received != 60 || in.Dropped["bug"] != 20 || in.DroppedTotal() != 20 || counted != 40 {
		t.Errorf("received %d, dropped %v, counted %d", in.Received, in.Dropped, counted)
	}
}
