package datadog

import (
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
)

// harness is a server before rings that nobody empties.
type harness struct {
	*Server
	admit *admit.Publishers
}

func newHarness(t *testing.T, change ...func(*Config)) *harness {
	t.Helper()
	counting := aggregate.DefaultConfig()
	counting.Deliver, counting.Merge = func(*aggregate.Sealed) {}, true
	aggregator, err := aggregate.New(counting)
	if err != nil {
		t.Fatal(err)
	}
	config := admit.DefaultConfig()
	config.Aggregator = aggregator
	publishers, err := admit.New(config)
	if err != nil {
		t.Fatal(err)
	}
	own := DefaultConfig()
	own.Log, own.Admit = slog.New(slog.DiscardHandler), publishers
	for _, change := range change {
		change(&own)
	}
	s, err := New(own)
	if err != nil {
		t.Fatal(err)
	}
	s.policy.Store(policyOf(t))
	s.merges.Store(true)
	return &harness{s, publishers}
}

func (h *harness) job(t *testing.T, start int64) *job {
	j := &job{Held: h.Hold(nil), server: h.Server}
	j.Fields = http1.Map{}
	j.Body = &bodies.Body{Bytes: bodyOf(t, 4, start)}
	return j
}

// TestPanicsWhileCounting: one before the spans are published leaves the request to the
// agent, one after it leaves it marked, and neither leaves a lock behind.
func TestPanicsWhileCounting(t *testing.T) {
	h := newHarness(t)
	counter := <-h.counting
	counter.Now = nil
	for range cap(h.counting) - 1 {
		<-h.counting
	}
	h.counting <- counter
	early := h.job(t, 1) // a start that asks for the clock
	if result := early.count(); result != ResultBug || early.IsCounted() {
		t.Errorf("a panic before: %s, marked %v", result, early.IsCounted())
	}
	if received := h.admit.Stats().Received; received != 0 {
		t.Errorf("%d spans were received", received)
	}
	late := h.job(t, 1)
	late.drops = true
	counter.Now = func() time.Time { // what is left is not there
		table, _ := counter.Decoded()
		for i := range table.Groups {
			table.Groups[i].End = math.MaxUint32
		}
		return time.Now()
	}
	if result := late.count(); result != ResultBug || !late.IsCounted() {
		t.Errorf("a panic after: %s, marked %v", result, late.IsCounted())
	}
	if stats := h.admit.Stats(); stats.Received == 0 || stats.DroppedTotal() != 0 {
		t.Errorf("received %d, dropped %v", stats.Received, stats.Dropped)
	}
	counter.Now = time.Now
	if result := h.job(t, time.Now().UnixNano()).count(); result != ResultCounted {
		t.Errorf("the next is %s", result)
	}
}
