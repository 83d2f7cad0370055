package datadog

import (
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
)

// harness is a server with rings that are never drained.
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
	server := DefaultConfig()
	server.Log, server.Admit = slog.New(slog.DiscardHandler), publishers
	for _, change := range change {
		change(&server)
	}
	s, err := New(server)
	if err != nil {
		t.Fatal(err)
	}
	s.policy.Store(policyOf(t))
	s.mergesStats.Store(true)
	return &harness{s, publishers}
}

// request returns a request with its body, after classify.
func (h *harness) request(t *testing.T, start int64) (r *traceRequest, count func()) {
	r = &traceRequest{server: h.Server}
	r.BufferedRequest = h.NewRequest(httptest.NewRequest(http.MethodPut, "/v0.4/traces", nil))
	r.Body = &bodies.Body{Bytes: bodyOf(t, 4, start)}
	return r, func() {
		if response := r.Handle(nil); response != nil {
			t.Error("a request is not forwarded")
		}
	}
}

// TestPanic_WhileCounting checks that a panic before the spans are published leaves the request to the agent, that
// a panic after it leaves the request marked as counted, and that no lock stays held.
func TestPanic_WhileCounting(t *testing.T) {
	h := newHarness(t)
	counter := <-h.idleCounters
	counter.Now = nil
	for range cap(h.idleCounters) - 1 {
		<-h.idleCounters
	}
	h.idleCounters <- counter
	early, count := h.request(t, 1) // a start time for which the counter needs the clock
	if count(); early.traceResult != ResultBug || early.IsCounted {
		t.Errorf("a panic before: %s, marked %v", early.traceResult, early.IsCounted)
	}
	if received := h.admit.Stats().Received; received != 0 {
		t.Errorf("%d spans were received", received)
	}
	late, count := h.request(t, 1)
	late.dropsUnsampled = true
	counter.Now = func() time.Time { // makes removeUnsampled panic: the groups end after the table
		table, _ := counter.Decoded()
		for i := range table.Groups {
			table.Groups[i].BodyEnd = math.MaxUint32
		}
		return time.Now()
	}
	if count(); late.traceResult != ResultBug || !late.IsCounted {
		t.Errorf("a panic after: %s, marked %v", late.traceResult, late.IsCounted)
	}
	if stats := h.admit.Stats(); stats.Received == 0 || stats.DroppedTotal() != 0 {
		t.Errorf("received %d, dropped %v", stats.Received, stats.Dropped)
	}
	counter.Now = time.Now
	next, count := h.request(t, time.Now().UnixNano())
	if count(); next.traceResult != ResultCounted {
		t.Errorf("the next is %s", next.traceResult)
	}
}

// TestExemplars_AgentThatIgnoresPriorities covers the agent's probabilistic sampler, which can drop traces that the
// tracer's sampling keeps.
func TestExemplars_AgentThatIgnoresPriorities(t *testing.T) {
	for heeds, want := range map[bool]uint64{true: 1, false: 0} {
		table := exemplars.New(8)
		h := newHarness(t, func(c *Config) {
			c.Exemplars = table
			c.Features = func() (receiver.Features, <-chan struct{}) {
				return receiver.Features{Stats: true, SpanKinds: []string{"server"}, AllowsDropUnsampled: heeds}, nil
			}
		})
		h.loadFeatures()
		r, count := h.request(t, time.Now().UnixNano())
		if count(); r.traceResult != ResultCounted || table.Counts().Taken != want {
			t.Errorf("%s, of an agent that heeds priorities %t: %+v", r.traceResult, heeds, table.Counts())
		}
	}
}
