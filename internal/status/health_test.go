package status

import (
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/zipkin"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/recovery"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// rooms creates all components whose statistics are shown, without any spans.
func rooms(t *testing.T) Sources {
	t.Helper()
	to, err := agent.New(agent.Config{URL: agent.URL{
		Network: "unix",
		Address: filepath.Join(t.TempDir(), "none"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	flusher, err := export.New(export.Config{}, to.Describe())
	if err != nil {
		t.Fatal(err)
	}
	counting := aggregate.DefaultConfig()
	counting.Drainers, counting.Deliver = 2, flusher.Accept
	aggregator, err := aggregate.New(counting)
	if err != nil {
		t.Fatal(err)
	}
	config := ingest.DefaultConfig()
	admitting := admit.DefaultConfig()
	admitting.Aggregator = aggregator
	publishers, err := admit.New(admitting)
	if err != nil {
		t.Fatal(err)
	}
	config.Socket.Path, config.Admit = filepath.Join(t.TempDir(), "s"), publishers
	config.Log = slog.New(slog.DiscardHandler)
	config.Features = func() (wire.Features, <-chan struct{}) { return wire.Features{}, nil }
	server, err := ingest.New(config)
	if err != nil {
		t.Fatal(err)
	}
	aggregator.Start()
	t.Cleanup(func() {
		server.Abandon()
		aggregator.Stop()
		flusher.Close(t.Context())
	})
	return Sources{
		Ingest: server, Admit: publishers, Aggregate: aggregator, Flush: flusher, Agent: to, Receivers: []ReceiverSource{
			{Name: "apm", Server: (*datadog.Server)(nil)},
			{Name: "otlp", Server: (*otlp.Server)(nil)},
			{Name: "zipkin", Server: (*zipkin.Server)(nil)},
		},
	}
}

func TestMetricNames(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&collector{
		rooms(t), "test", 1, memory.None, none, none, func() int { return 0 },
		(*recovery.File)(nil).Losses,
	})
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// overflowing is a collector whose statistics contain a label over its budget, because some metrics are
// absent without one.
type overflowing struct{ *collector }

func (o overflowing) Collect(target chan<- prometheus.Metric) {
	statistics := o.sources.snapshot()
	statistics.aggregate.Overflow = &registry.Overflow{
		IsLast: true, Labels: []registry.LabelOverflow{{Service: "shop", Label: "resource", Budget: 2, Wanted: 7}},
	}
	o.emitAll(statistics, target)
}

// TestMetrics_LabelOverBudget checks the values of the metrics about a label over its budget.
func TestMetrics_LabelOverBudget(t *testing.T) {
	c := &collector{
		rooms(t), "test", 1, memory.None, none, none, func() int { return 0 },
		(*recovery.File)(nil).Losses,
	}
	want := map[string]float64{"spanstatsd_label_values_wanted": 7, "spanstatsd_label_budget": 2}
	for _, test := range []struct {
		collector prometheus.Collector
		want      map[string]float64
	}{{overflowing{c}, want}, {c, map[string]float64{}}} {
		metrics := prometheus.NewPedanticRegistry()
		metrics.MustRegister(test.collector)
		families, err := metrics.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			if _, isWanted := want[family.GetName()]; isWanted {
				got[family.GetName()] = family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		if !maps.Equal(got, test.want) {
			t.Errorf("the metrics are %v, want %v", got, test.want)
		}
	}
}

// TestDocs_ListEveryMetric checks that docs/metrics.md lists exactly the exported metrics, with their labels.
func TestDocs_ListEveryMetric(t *testing.T) {
	metrics := prometheus.NewPedanticRegistry()
	metrics.MustRegister(overflowing{&collector{
		rooms(t), "test", 1, memory.None, none, none, func() int { return 0 },
		(*recovery.File)(nil).Losses,
	}})
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	program := map[string]string{}
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		slices.Sort(labels)
		program[family.GetName()] = strings.Join(labels, " ")
	}
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `(spanstatsd_[a-z_]+)` \\| ([^|]*)\\|")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		labels := regexp.MustCompile("[a-z]+").FindAllString(row[2], -1)
		slices.Sort(labels)
		document[row[1]] = strings.Join(labels, " ")
	}
	if !maps.Equal(program, document) {
		for _, name := range slices.Sorted(maps.Keys(program)) {
			if labels, listed := document[name]; !listed || labels != program[name] {
				t.Errorf("%s has labels %q, docs/metrics.md says %q (listed: %t)", name, program[name],
					labels, listed)
			}
		}
		for name := range document {
			if _, exists := program[name]; !exists {
				t.Errorf("docs/metrics.md lists %s, which does not exist", name)
			}
		}
	}
}

// TestMetrics_ReasonsFromStart checks that each reason is present with a value of 0.
func TestMetrics_ReasonsFromStart(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&collector{
		rooms(t), "test", 1, memory.None, none, none, func() int { return 0 },
		(*recovery.File)(nil).Losses,
	})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, label := range m.GetLabel() {
				seen[family.GetName()+" "+label.GetValue()] = true
				if c := m.GetCounter(); c != nil && c.GetValue() != 0 {
					t.Errorf("%s %s starts at %v", family.GetName(), label.GetValue(), c.GetValue())
				}
			}
		}
	}
	for _, want := range []string{
		"spanstatsd_spans_dropped_total ring_full", "spanstatsd_spans_dropped_total malformed",
		"spanstatsd_spans_dropped_total batch_too_large", "spanstatsd_spans_dropped_total not_wanted",
		"spanstatsd_spans_dropped_total shutdown", "spanstatsd_spans_collapsed_total whole_key",
		"spanstatsd_spans_unsent_total ambiguous", "spanstatsd_client_lost_spans_total buffer_full",
		"spanstatsd_protocol_errors_total bad_frame", "spanstatsd_payloads_total accepted",
	} {
		if !seen[want] {
			t.Errorf("%s is not there", want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	s, err := New(Config{
		Addr: "127.0.0.1:0", Version: "test", FlushInterval: 10 * time.Second,
		Sources: rooms(t), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Close(t.Context())
	get := func(path string) (int, string) {
		t.Helper()
		response, err := http.Get("http://" + s.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(body)
	}
	if code, body := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz before it is ready: %d %s", code, body)
	}
	s.SetReady(true)
	for path, want := range map[string]string{
		"/readyz": "ok", "/livez": "ok", "/status": `"balanced": true`,
		"/metrics": `spanstatsd_build_info{goversion="go`,
	} {
		if code, body := get(path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := get("/debug/pprof/"); code != http.StatusNotFound {
		t.Errorf("/debug/pprof/ answered %d", code)
	}
	if _, err := New(Config{Addr: s.Addr(), Log: slog.New(slog.DiscardHandler)}); err == nil ||
		!strings.Contains(err.Error(), "--http-addr") {
		t.Errorf("an address in use gave %v", err)
	}
}

func TestLiveness_StalledSealer(t *testing.T) {
	sources := rooms(t)
	s := &probes{sources: &sources, interval: time.Nanosecond}
	time.Sleep(time.Microsecond)
	answer := httptest.NewRecorder()
	s.livez(answer, nil)
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
}

// none is the value of counts that are always 0.
func none() uint64 { return 0 }
