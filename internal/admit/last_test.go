package admit

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestLastPublisher_DropReasons: without an agent upstream, spans that may be admitted later do not
// count as received. Other spans are dropped for their own reason, never as left to the agent.
func TestLastPublisher_DropReasons(t *testing.T) {
	h := newHarness(t, nil)
	p, other := h.NewLastPublisher(span.Origin{Service: "last"}), h.NewConnection(span.Origin{Service: "other"}, 0)
	slots := h.config.Aggregator.RingSlots()
	if reason, ok := h.offer(p, body(slots*h.config.Aggregator.Drainers()+1)); ok ||
		reason != DropBatchTooLarge {
		t.Errorf("more than the rings hold was answered with %s", reason)
	}
	for counted, ok := 0, true; ok; counted++ {
		var reason DropReason
		if reason, ok = h.offer(p, body(slots/8)); !ok && (reason != DropOverShare || counted == 0) {
			t.Errorf("batch %d was refused as %s", counted, reason)
		}
	}
	h.SetStatsWanted(false)
	if reason, ok := h.offer(p, body(5)); ok || reason != DropNotWanted {
		t.Errorf("unwanted spans were answered with %s", reason)
	}
	h.SetStatsWanted(true)
	h.Stop()
	if reason, ok := h.offer(p, body(6)); ok || reason != DropShutdown {
		t.Errorf("at a stop it was answered with %s", reason)
	}
	h.finish(p, other)
	in := h.Stats()
	if in.Dropped["batch_too_large"] == 0 || in.Dropped["not_wanted"] != 5 ||
		in.DroppedTotal() != in.Dropped["batch_too_large"]+5 {
		t.Errorf("dropped %v", in.Dropped)
	}
}

// TestLastPublisher_Panic: without an agent upstream, a panic does not leave spans to the agent.
func TestLastPublisher_Panic(t *testing.T) {
	h := newHarness(t, nil)
	p := h.NewLastPublisher(span.Origin{Service: "a"})
	shares := p.shares
	p.shares = nil
	if !panics(func() { h.PublishTogether(never(t), BatchPart{p, batchOf(100)}) }) {
		t.Error("a publisher without shares did not panic")
	}
	p.shares = shares
	h.finish(p)
	if in := h.Stats(); in.Dropped["bug"] != 100 || in.DroppedTotal() != 100 {
		t.Errorf("dropped %v", in.Dropped)
	}
}

// TestLastPublisher_CommonOrigin: a last publisher whose origin does not fit counts in the
// common origin. A publisher with an agent upstream leaves its spans to the agent.
func TestLastPublisher_CommonOrigin(t *testing.T) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.MaxOrigins = 1 })
	first, last, left := h.NewPublisher(span.Origin{Service: "first"}), h.NewLastPublisher(span.Origin{Service: "last"}), h.NewPublisher(span.Origin{Service: "left"})
	if _, ok := h.offer(first, body(1)); !ok {
		t.Error("the first found no room")
	}
	if reason, ok := h.offer(last, body(2)); !ok {
		t.Errorf("the last was refused as %s", reason)
	}
	if reason, ok := h.offer(left, body(4)); ok || reason != DropLeftToAgent {
		t.Errorf("one that can be left was answered with %s", reason)
	}
	h.finish(first, last, left)
	if in := h.Stats(); h.counted() != 3 || in.Dropped["left_to_agent"] != 4 || in.Collapsed["origin"] != 2 {
		t.Errorf("counted %d, dropped %v, collapsed %v", h.counted(), in.Dropped, in.Collapsed)
	}
}
