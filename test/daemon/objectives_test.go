package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	exporting "github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
	"github.com/vmihailenco/msgpack/v5"
)

// objectiveCounts contains the events and good events of objectives, by name.
type objectiveCounts map[string]slo.Count

// scrapeObjectives returns the counters of objectives that Prometheus scrapes.
func scrapeObjectives(t *testing.T, p *pair) objectiveCounts {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, "http://"+p.HTTPAddr()+prometheus.Path)))
	if err != nil {
		t.Fatal(err)
	}
	counts := objectiveCounts{}
	for _, m := range families[points.ObjectiveEventsTotal].GetMetric() {
		counts[m.GetLabel()[0].GetValue()] = slo.Count{Events: m.GetCounter().GetValue()}
	}
	for _, m := range families[points.ObjectiveGoodEventsTotal].GetMetric() {
		count := counts[m.GetLabel()[0].GetValue()]
		count.Good = m.GetCounter().GetValue()
		counts[m.GetLabel()[0].GetValue()] = count
	}
	return counts
}

// objectiveReceiver is an OTLP receiver that records the last counters of objectives. It rejects each third request with
// a temporary error.
type objectiveReceiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	counts   objectiveCounts
}

func startObjectiveReceiver(t *testing.T) *objectiveReceiver {
	t.Helper()
	r := &objectiveReceiver{counts: objectiveCounts{}}
	r.Server = httptest.NewServer(collector.Handler(r.receive))
	t.Cleanup(r.Close)
	return r
}

func (r *objectiveReceiver) receive(request collector.Request) (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.requests%3 == 0 {
		return http.StatusServiceUnavailable
	}
	for _, metric := range request.Metrics() {
		r.record(*metric)
	}
	return http.StatusOK
}

// record records the points of a metric.
func (r *objectiveReceiver) record(m collector.Metric) {
	for _, point := range m.Points {
		isObjective := len(point.Attributes) > 0 && point.Attributes[0].Key == points.ObjectiveName
		if !isObjective {
			continue
		}
		name := fmt.Sprint(point.Attributes[0].Value)
		count := r.counts[name]
		switch m.Name {
		case points.ObjectiveEvents:
			count.Events = float64(point.Value)
		case points.ObjectiveGoodEvents:
			count.Good = float64(point.Value)
		}
		r.counts[name] = count
	}
}

func (r *objectiveReceiver) last() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.counts)
}

// TestObjectives_EveryReceiver sends the same four spans to each receiver: at the threshold, a nanosecond (for Zipkin: a
// microsecond) beyond it, with an error, and with another name. Both exporters must have the exact counts, also in an OTLP
// receiver that loses requests.
func TestObjectives_EveryReceiver(t *testing.T) {
	for _, temporality := range []exporting.Temporality{exporting.Delta, exporting.Cumulative} {
		t.Run(string(temporality), func(t *testing.T) {
			t.Parallel()
			checkReceivers(t, temporality)
		})
	}
}

func checkReceivers(t *testing.T, temporality exporting.Temporality) {
	const threshold = 300 * time.Millisecond
	services := []string{"native", "apm", "otlp", "zipkin"}
	var texts []string
	for _, service := range services {
		texts = append(texts, service+": service="+service+", span=POST /checkout, 300ms, 99.9%")
	}
	texts = append(texts, "none: service=none, 99%", "all: kind=any, env=test, 99%")
	objectives, err := slo.Parse(texts)
	if err != nil {
		t.Fatal(err)
	}
	list, err := slo.NewList(objectives)
	if err != nil {
		t.Fatal(err)
	}
	receiver := startObjectiveReceiver(t)
	var apm, otlp, zipkin string
	p := startPair(t, func(c *daemon.Config) {
		socket := c.Ingest.Socket.Path
		apm, otlp, zipkin = socket+"a", socket+"o", socket+"z"
		c.APM.Socket.Path, c.OTLP.Socket.Path, c.Zipkin.Socket.Path = apm, otlp, zipkin
		c.Admit.Objectives, c.Admit.DefaultEnv = list, "test"
		c.Prometheus = prometheus.New(prometheus.Config{URL: prometheus.Path, Objectives: list.Names()})
		endpoint, err := exporting.ParseEndpoint(receiver.URL)
		if err != nil {
			t.Fatal(err)
		}
		x, err := exporting.New(exporting.Config{
			Variables: exporting.Variables{Endpoint: endpoint}, Temporality: temporality, Objectives: list.Names(),
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Exporters = []export.Exporter{x.Describe()}
	})
	want := objectiveCounts{"none": {}, "all": {}}
	for _, service := range services {
		want[service] = slo.Count{}
	}
	if got := scrapeObjectives(t, p); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("before the first span: %v, want %v", got, want)
	}

	native := p.client("native")
	ended := time.Now()
	type sentSpan struct {
		name    string
		took    time.Duration
		isError bool
	}
	sent := []sentSpan{
		{"POST /checkout", threshold, false}, {"POST /checkout", threshold + 1, false}, {"POST /checkout", 1, true}, {"GET /", 1, false},
	}
	var snapshots []client.Snapshot
	var trace []map[string]any
	var otlpSpans, zipkinSpans []string
	for i, s := range sent {
		snapshots = append(snapshots, client.Snapshot{
			Key:      client.Key{Service: "native", Operation: "http.request", Resource: s.name, Kind: "server"},
			Duration: s.took, End: ended, Error: s.isError,
		})
		end, code, isError, tags := ended.UnixNano(), 0, 0, ""
		if s.isError {
			code, isError, tags = 2, 1, `,"error":"true"`
		}
		method, route, _ := strings.Cut(s.name, " ")
		trace = append(trace, map[string]any{
			"service": "apm", "name": "http.request", "resource": s.name, "trace_id": 7, "span_id": 10 + i, "parent_id": 0,
			"start": end - int64(s.took), "duration": int64(s.took), "error": isError, "meta": map[string]string{"span.kind": "server"},
			"metrics": map[string]float64{"_dd.measured": 1},
		})
		otlpSpans = append(otlpSpans, fmt.Sprintf(`{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"000000000000001%d",`+
			`"name":%q,"kind":2,"status":{"code":%d},"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
			`{"key":"http.request.method","value":{"stringValue":%q}},{"key":"http.route","value":{"stringValue":%q}}]}`,
			i, s.name, code, end-int64(s.took), end, method, route))
		micros := (s.took + time.Microsecond - 1).Microseconds() // rounded up
		zipkinSpans = append(zipkinSpans, fmt.Sprintf(`{"traceId":"0000000000000001","id":"000000000000001%d","name":%q,"kind":"SERVER",`+
			`"timestamp":%d,"duration":%d,"localEndpoint":{"serviceName":"zipkin"},"tags":{"http.method":%q,"http.route":%q%s}}`,
			i, s.name, end/1000-micros, micros, method, route, tags))
	}
	const requests = 2 // the second one is a retry, which is not counted
	body, err := msgpack.Marshal([][]map[string]any{trace})
	if err != nil {
		t.Fatal(err)
	}
	for range requests {
		post(t, apm, "/v0.4/traces", "application/msgpack", body)
		post(t, otlp, "/v1/traces", "application/json", fmt.Appendf(nil, `{"resourceSpans":[%s]}`,
			resourceSpans("otlp", "go", otlpSpans...)))
		post(t, zipkin, "/api/v2/spans", "application/json", fmt.Appendf(nil, `[%s]`, strings.Join(zipkinSpans, ",")))
	}
	if !native.Publish(snapshots) || native.Close(t.Context()) != nil {
		t.Fatal("the client lost its spans")
	}
	for _, service := range services {
		want[service] = slo.Count{Events: 3, Good: 1}
	}
	want["all"] = slo.Count{Events: float64(4 * len(services)), Good: float64(3 * len(services))}
	var scraped, received string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Prometheus has %s\nOTLP has       %s\nwant           %v", scraped, received, want)
		}
	})
	eventually.True(t, "both exporters to have the exact counts", func() bool {
		scraped, received = fmt.Sprint(scrapeObjectives(t, p)), receiver.last()
		return scraped == fmt.Sprint(want) && received == fmt.Sprint(want)
	})
	p.Stop()
}
