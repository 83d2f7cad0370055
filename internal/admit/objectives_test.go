package admit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/ignore"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// withObjectives returns a harness that counts objectives, and a function that returns their sums over all cycles.
func withObjectives(t *testing.T, change func(*Config, *aggregate.Config), texts ...string) (*harness, func() slo.Counts) {
	t.Helper()
	objectives, err := slo.Parse(texts)
	if err != nil {
		t.Fatal(err)
	}
	list, err := slo.NewList(objectives)
	if err != nil {
		t.Fatal(err)
	}
	sum := make(slo.Counts, list.Len())
	var h *harness
	h = newHarness(t, func(c *Config, a *aggregate.Config) {
		c.Objectives, a.Objectives = list, list.Len()
		a.Deliver = func(s *aggregate.Sealed) {
			sum.Add(s.Objectives)
			h.deliver(s)
		}
		if change != nil {
			change(c, a)
		}
	})
	return h, func() slo.Counts { return sum }
}

// request returns the encoded key of a server's span.
func request(name string) []byte {
	return wire.AppendKey(nil, &span.Key{Service: "shop", Operation: "op", Resource: name, Kind: "server"})
}

// withSpan returns the body of a batch with one span.
func withSpan(key []byte, duration uint64, flags span.Flags, weight float64) []byte {
	return bodyOf(1, func(_ int, frame []byte) []byte {
		return wire.AppendWhole(frame, key, duration, time.Now().UnixNano(), flags, weight)
	})
}

// Batches from messages and from request bodies, with and without numbered keys, count each matching span once.
func TestObjectives_CountMatchingSpans(t *testing.T) {
	h, sum := withObjectives(t, nil, "checkout: service=shop, span=POST /checkout, 300ns, 99%", "all: service=shop, 99%",
		"prod: env=prod, span=GET /, 99%")
	h.aggregator.Start()
	connection, receiver := h.NewConnection(span.Origin{Service: "shop", Env: "prod"}, 1), h.NewPublisher(span.Origin{Service: "shop"})
	if err := connection.Define(1, request("POST /checkout")); err != nil {
		t.Fatal(err)
	}
	numbered := bodyOf(3, func(i int, frame []byte) []byte {
		return wire.AppendNumbered(frame, 1, 299+uint64(i), time.Now().UnixNano(), 0, 1)
	})
	for range 3 {
		if err := connection.Publish(numbered); err != nil {
			t.Fatal(err)
		}
		for _, p := range []*Publisher{connection, receiver} {
			h.offer(p, withSpan(request("POST /checkout"), 300, 0, 1))
			h.offer(p, withSpan(request("POST /checkout"), 301, 0, 2.5))
			h.offer(p, withSpan(request("POST /checkout"), 1, span.Error, 1))
			h.offer(p, withSpan(request("GET /"), 301, 0, 1))
			h.offer(p, withSpan(key("POST /checkout"), 1, 0, 1)) // without a kind
		}
	}
	h.stop(connection, receiver)
	want := slo.Counts{
		{Events: 3 * (3 + 2*4.5), Good: 3 * (2 + 2)}, {Events: 3 * (3 + 2*5.5), Good: 3 * (3 + 2*4.5)}, {Events: 3, Good: 3},
	}
	if got := sum(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	stats := h.Stats()
	for i, o := range stats.Objectives {
		if o.Name != []string{"checkout", "all", "prod"}[i] || o.Count != want[i] {
			t.Errorf("the statistics have %+v, want %v", o, want[i])
		}
	}
}

// Objectives match names that lose their label because of a budget.
func TestObjectives_IgnoreBudgets(t *testing.T) {
	h, sum := withObjectives(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = 2 },
		"last: span=name 99, service=shop, 99%")
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	for range 2 {
		for i := range 100 {
			h.offer(p, withSpan(request(fmt.Sprint("name ", i)), 1, 0, 1))
		}
	}
	h.stop(p)
	if h.rows["name 99"] != 0 {
		t.Fatal("the name has a row of its own")
	}
	if got := sum(); got[0] != (slo.Count{Events: 2, Good: 2}) {
		t.Errorf("%v", got)
	}
}

// Neither dropped batches nor ignored spans are counted.
func TestObjectives_CountPublishedSpans(t *testing.T) {
	h, sum := withObjectives(t, func(c *Config, a *aggregate.Config) {
		a.Drainers, a.RingSlots = 1, 1024
		c.Ignore, _ = ignore.Parse([]string{"resource=GET /healthz"})
	}, "all: service=shop, 99%")
	p := h.NewPublisher(span.Origin{Service: "shop"})
	h.offer(p, withSpan(request("GET /healthz"), 1, 0, 1))
	published := 0
	for range 2000 { // the rings are not drained yet
		if _, ok := h.offer(p, withSpan(request("GET /"), 1, 0, 1)); ok {
			published++
		}
	}
	if published == 2000 {
		t.Fatal("no batch was dropped")
	}
	h.aggregator.Start()
	h.stop(p)
	if got := sum(); got[0].Events != float64(published) {
		t.Errorf("%v of %d published spans", got, published)
	}
}

// Tracers send no durations of single spans, so an objective with a threshold can't count their statistics.
func TestObjectives_GroupsWithoutThreshold(t *testing.T) {
	h, sum := withObjectives(t, func(_ *Config, a *aggregate.Config) { a.Merge = true }, "fast: service=shop, 1s, 99%", "ok: service=shop, 99%")
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	now := time.Now()
	width := uint64(10 * time.Second)
	groups := []aggregate.Group{{
		Key:    span.Key{Service: "shop", Operation: "op", Resource: "GET /", Kind: "server"},
		Bucket: now.UnixNano() - now.UnixNano()%int64(width),
		Counts: aggregate.Counts{Spans: 10, Hits: 10, Errors: 4},
	}}
	if err := p.Merge(func(uint64) {}, groups, width, now); err != nil {
		t.Fatal(err)
	}
	stats := h.Stats()
	p.Close()
	h.aggregator.Stop()
	if got := sum(); !slices.Equal(got, slo.Counts{{}, {Events: 10, Good: 6}}) || stats.WithoutObjective != 10 {
		t.Errorf("%v, and %d spans are not counted", got, stats.WithoutObjective)
	}
}
