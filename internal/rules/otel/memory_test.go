package otel_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// TestCountersKeepTheirPromise: whatever a body is made of, counting it makes a counter hold no
// more than its part of the budget.
func TestCountersKeepTheirPromise(t *testing.T) {
	policy := standard()
	for _, length := range []int{64 << 10, 1 << 20, 16 << 20} {
		for name, body := range otlptest.CostlyBodies(length) {
			c := otel.NewCounter()
			before := otlptest.MemoryInUse()
			err := c.Count(body, policy)
			held := otlptest.MemoryInUse() - before
			promised := otel.CounterBytes(len(body))
			t.Logf("%d KiB of %s: %d KiB held, %d promised: %v", len(body)>>10, name, held>>10, promised>>10,
				err)
			if held > promised {
				t.Errorf("%d bytes of %s made it hold %d", len(body), name, held)
			}
			if err != nil && !errors.Is(err, spantable.ErrTooMuch) {
				t.Error(err)
			}
			runtime.KeepAlive(c)
			runtime.KeepAlive(body)
		}
	}
}

// TestBytesOfKeysAreBounded: a long name of a service is in the key of each of its spans.
func TestBytesOfKeysAreBounded(t *testing.T) {
	body := otlptest.CostlyBodies(1 << 20)["names"]
	for range 2 {
		if err := otel.NewCounter().Count(body, standard()); err != nil {
			t.Errorf("names that stand in the body: %v", err)
		}
	}
	tag := otlptest.Attribute{"zone", string(make([]byte, 1<<10))}
	spans := make([]otlptest.Span, 3000)
	wide := otlptest.Request(otlptest.Resource{
		Attributes: []otlptest.Attribute{tag},
		Scopes:     [][]otlptest.Span{spans},
	})
	policy := otel.NewPolicy(otel.Labels{Attributes: []string{"zone"}})
	c := otel.NewCounter()
	if err := c.Count(wide, policy); !errors.Is(err, spantable.ErrTooMuch) {
		t.Errorf("a tag of a resource in the keys of %d spans: %v", len(spans), err)
	}
	if batchesOf(c) != 0 {
		t.Error("a body that was not counted has batches")
	}
}

// TestAWarmCounterAllocatesNothingASpan, but a few texts for the origin of a resource.
func TestAWarmCounterAllocatesNothingASpan(t *testing.T) {
	var body []byte
	policy, c := standard(), otel.NewCounter()
	round := func() {
		if err := c.Count(body, policy); err != nil {
			t.Fatal(err)
		}
		spans := 0
		for _, batch := range c.Batches {
			spans += len(batch.Snapshots)
		}
		for s := range c.Counted {
			spans -= 1 + s.Batch
		}
		if spans != 0 {
			t.Fatal(spans, " spans more")
		}
		c.Release()
	}
	for _, traces := range []int{1, 100, 500} {
		body = otlptest.Web(traces)
		for range 3 {
			round()
		}
		if n := testing.AllocsPerRun(20, round); n > 16 {
			t.Errorf("%v allocations a body of %d spans", n, 4*traces)
		}
	}
}

// TestASpanCountsForAsManyAsItStandsFor, whose weight is bounded.
func TestASpanCountsForAsManyAsItStandsFor(t *testing.T) {
	for state, want := range map[string]float64{
		"ot=th:c": 4, "ot=th:ffffffffffffff": 1 << 32,
		"malformed": 1,
	} {
		if got := only(t, otlptest.Span{Name: "x", State: state}, standard()).Weight; got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
	body := otlptest.SDKRequest(otlptest.Span{State: "ot=th:8"}, otlptest.Span{State: "ot=th:8"}, otlptest.Span{},
		otlptest.Span{State: "ot=th:c"})
	var got []float64
	for _, s := range countedOf(t, otel.NewCounter(), body, standard()) {
		got = append(got, s.Weight)
	}
	if len(got) != 4 || got[0] != 2 || got[1] != 2 || got[2] != 1 || got[3] != 4 {
		t.Errorf("weights %v", got)
	}
}

// TestEachSpanIsFoundInItsBatch, by the number that it has in the request.
func TestEachSpanIsFoundInItsBatch(t *testing.T) {
	of := func(service string, durations ...uint64) (r otlptest.Resource) {
		r.Attributes = otlptest.SDK(service)
		for _, d := range durations {
			r.Scopes = append(r.Scopes, []otlptest.Span{{End: d}})
		}
		return r
	}
	c := otel.NewCounter()
	if err := c.Count(otlptest.Request(of("a", 1, 2), of("b", 3), of("idle"), of("a", 4, 5)),
		standard()); err != nil {
		t.Fatal(err)
	}
	var durations [][]uint64
	for _, batch := range c.Batches {
		var all []uint64
		for _, s := range batch.Snapshots {
			all = append(all, s.Duration)
		}
		durations = append(durations, all)
	}
	seen := 0
	for s := range c.Counted {
		if want := c.Request().Spans[s.Span].Duration; s.Span != seen || durations[s.Batch][s.At] != want {
			t.Errorf("span %d is said to be %d of batch %d", s.Span, s.At, s.Batch)
		}
		seen++
	}
	if seen != 5 || len(durations) != 2 {
		t.Errorf("%d spans, %v", seen, durations)
	}
}
