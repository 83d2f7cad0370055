package datadog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/vmihailenco/msgpack/v5"
)

// sampled is a daemon with an agent and a collector, and the exemplars that the collector received, by
// resource and outcome.
type sampled struct {
	*proxied
	collector *metricsCollector
}

func startSampled(t *testing.T, agent *fakeAgent, change func(*daemon.Config)) *sampled {
	t.Helper()
	s := &sampled{collector: startCollector(t)}
	endpoint, err := otlp.ParseEndpoint(s.collector.URL)
	if err != nil {
		t.Fatal(err)
	}
	dimensions, err := points.ParseDimensions("dd.span.Resource")
	if err != nil {
		t.Fatal(err)
	}
	agent.info = strings.Replace(plainInfo, "{", `{"client_drop_p0s":true,`, 1)
	table := exemplars.New(1000)
	exporter, err := otlp.New(otlp.Config{
		Variables:  otlp.Variables{Endpoint: endpoint},
		Dimensions: dimensions, Exemplars: table,
	})
	if err != nil {
		t.Fatal(err)
	}
	waits := false
	s.proxied = start(t, agent, func(c *daemon.Config) {
		c.Exporters, c.Exemplars = []export.Exporter{exporter.Describe()}, table
		if change != nil {
			change(c)
		}
		waits = c.APM.DropUnsampled == datadog.DropAuto
	})
	if waits {
		s.dropping() // waits until the agent's features are known
	}
	return s
}

// exemplars stops the daemon and returns the received exemplars.
func (s *sampled) exemplars() map[string]string {
	s.t.Helper()
	s.stop()
	s.collector.mu.Lock()
	defer s.collector.mu.Unlock()
	return maps.Clone(s.collector.found)
}

// sampledSpan is a server span and the only span of its trace. Trace ID and span ID are equal.
type sampledSpan struct {
	number   uint64
	resource string
	ms       float64
	isFailed bool
	priority int // 9 means none
}

func bodyOfSpans(spans ...sampledSpan) []byte {
	var all []any
	for _, s := range spans {
		failed, metrics := 0, map[string]float64{}
		if s.isFailed {
			failed = 1
		}
		if s.priority != 9 {
			metrics["_sampling_priority_v1"] = float64(s.priority)
		}
		ns := int64(s.ms * 1e6)
		all = append(all, []any{map[string]any{
			"service":  "shop",
			"name":     "op",
			"resource": s.resource,
			"trace_id": s.number,
			"span_id":  s.number,
			"error":    failed,
			"start":    time.Now().UnixNano() - ns, "duration": ns, "metrics": metrics,
			"meta": map[string]string{"span.kind": "server", "_dd.p.tid": "66f0a9b300000000"},
		}})
	}
	body, err := msgpack.Marshal(all)
	if err != nil {
		panic(err)
	}
	return body
}

func exemplarOf(number uint64) string {
	return fmt.Sprintf("66f0a9b300000000%016x %016x", number, number)
}

// TestExemplars_ForwardedTracesOnly checks that each resource has the slowest span without an error
// and the slowest one with an error as exemplars, and no span of a trace that is or can be rejected by
// sampling, whether or not the daemon drops rejected traces.
func TestExemplars_ForwardedTracesOnly(t *testing.T) {
	spans := []sampledSpan{
		{1, "/a", 5, false, 1},
		{2, "/a", 90, false, 0},
		{3, "/a", 91, false, -1},
		{4, "/a", 92, false, 9},
		{5, "/a", 93, true, 0},
		{6, "/a", 9, false, 2},
		{7, "/a", 7, false, 1},
		{8, "/a", 30, true, 1},
		{9, "/a", 20, true, 1},
		{10, "/b", 50, false, 0},
		{11, "/c", 0, true, 1},
	}
	want := map[string]string{
		"STATUS_CODE_UNSET /a ": exemplarOf(6),
		"STATUS_CODE_ERROR /a ": exemplarOf(8),
		"STATUS_CODE_ERROR /c ": exemplarOf(11),
	}
	for _, drops := range []datadog.Dropping{datadog.DropAuto, datadog.DropOff} {
		// The daemon knows which traces the agent keeps only after the agent has responded.
		var got map[string]string
		eventually.True(t, "an exemplar", func() bool {
			s := startSampled(t, startAgent(t), func(c *daemon.Config) { c.APM.DropUnsampled = drops })
			s.send("/v0.4/traces", bodyOfSpans(spans...))
			got = swap(s.exemplars())
			return len(got) > 0
		})
		if !maps.Equal(got, want) {
			t.Errorf("unsampled traces %v: %v, want %v", drops, got, want)
		}
	}
}

// swap exchanges status and resource in the keys.
func swap(found map[string]string) map[string]string {
	swapped := map[string]string{}
	for name, ids := range found {
		var first, second string
		_, _ = fmt.Sscan(name, &first, &second)
		if first[0] == '/' {
			first, second = second, first
		}
		swapped[first+" "+second+" "] = ids
	}
	return swapped
}

// TestExemplars_NoneOfTracesCountedByTracer: the daemon forwards them uncounted.
func TestExemplars_NoneOfTracesCountedByTracer(t *testing.T) {
	s := startSampled(t, startAgent(t), nil)
	s.send("/v0.4/traces", bodyOfSpans(sampledSpan{2, "/b", 5, false, 1}), mark, "true")
	if got := s.exemplars(); len(got) != 0 || s.collector.calls != int64(s.stop().Received) {
		t.Errorf("%v, %d calls", got, s.collector.calls)
	}
}

// TestExemplars_MatchTheirSeries has several tracers send more resources than the daemon
// can keep. Each exemplar must belong to the series that counted its span; the collector checks that
// its duration is in a non-empty bucket.
func TestExemplars_MatchTheirSeries(t *testing.T) {
	s := startSampled(t, startAgent(t), func(c *daemon.Config) {
		c.Aggregate.MaxAggregates, c.Aggregate.Masking = 16, registry.MaskNever
	})
	var sending sync.WaitGroup
	for tracer := range uint64(4) {
		sending.Go(func() {
			rnd := rand.New(rand.NewPCG(tracer, 5))
			for i := range uint64(20) {
				var spans []sampledSpan
				for j := range uint64(30) {
					number := 1 + tracer*1000 + i*30 + j
					ms := float64(rnd.Uint64N(1 << (10 + rnd.IntN(10))))
					spans = append(spans,
						sampledSpan{
							number, fmt.Sprint("/", rnd.IntN(40)), ms, rnd.IntN(3) == 0,
							1 + rnd.IntN(2),
						})
				}
				s.send("/v0.4/traces", bodyOfSpans(spans...))
			}
		})
	}
	sending.Wait()
	if got := s.exemplars(); len(got) < 10 || s.collector.calls != int64(s.stop().Received) {
		t.Errorf("%d series have an exemplar, of %d spans", len(got), s.collector.calls)
	}
}
