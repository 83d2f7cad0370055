package daemon_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	exporting "github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// startMeasuring starts a daemon with the given measures, which is scraped, and returns the socket that receives OTLP.
func startMeasuring(t *testing.T, measures string, changes ...func(*daemon.Config)) (p *pair, at string) {
	t.Helper()
	parsed, err := measure.Parse(measures)
	if err != nil {
		t.Fatal(err)
	}
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	if err != nil {
		t.Fatal(err)
	}
	p = startPair(t, func(c *daemon.Config) {
		at = takesOTLP(c)
		c.Aggregate.FlushInterval = time.Second
		c.OTLP.Labels.Measures = parsed
		c.OTLP.Labels.Attributes = slices.DeleteFunc(measure.Labels(parsed), otel.IsDefaultLabel)
		c.Prometheus = prometheus.New(prometheus.Config{
			URL: prometheus.Path, Dimensions: dimensions, Bounds: []float64{.1, 1}, Measures: parsed,
		})
		for _, change := range changes {
			change(c)
		}
	})
	return p, at
}

// valueSpan returns a span of a call of a model, or of anything else with values.
func valueSpan(id uint64, attributes ...otlptest.Attribute) otlptest.Span {
	now := uint64(time.Now().UnixNano())
	return otlptest.Span{
		Trace: id, ID: id, Name: "call", Kind: spantable.KindClient, Start: now - uint64(time.Second), End: now,
		Attributes: attributes, Code: -1,
	}
}

// valuesOf is the sum and the number of values of a metric.
type valuesOf struct{ sum, count float64 }

// scrapeValues waits until a metric has a number of values, and returns the sums and numbers of values by the given
// labels.
func scrapeValues(t *testing.T, p *pair, metric string, count float64, labels ...string) map[string]valuesOf {
	t.Helper()
	var byLabels map[string]valuesOf
	eventually.True(t, fmt.Sprintf("%s has %g values", metric, count), func() bool {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, "http://"+p.HTTPAddr()+prometheus.Path)))
		if err != nil {
			t.Fatal(err)
		}
		byLabels = map[string]valuesOf{}
		total := 0.0
		for _, series := range families[metric].GetMetric() {
			var values []string
			for _, name := range labels {
				for _, label := range series.GetLabel() {
					if label.GetName() == name {
						values = append(values, label.GetValue())
					}
				}
			}
			key, histogram := strings.Join(values, " "), series.GetHistogram()
			before := byLabels[key]
			byLabels[key] = valuesOf{before.sum + histogram.GetSampleSum(), before.count + float64(histogram.GetSampleCount())}
			total += float64(histogram.GetSampleCount())
		}
		return total >= count
	})
	return byLabels
}

// TestMeasure_TokensUnderFloods sends calls of models whose names and tenants exceed every budget, from more services
// than there are origins. The tokens of all series are those of all spans, to the token, and the spans are counted as
// without measures.
func TestMeasure_TokensUnderFloods(t *testing.T) {
	t.Parallel()
	p, at := startMeasuring(t, "gen_ai", func(c *daemon.Config) {
		c.Aggregate.MaxAggregates, c.Aggregate.MaxOrigins = 64, 4
		c.OTLP.Labels.Attributes = append(c.OTLP.Labels.Attributes, "tenant.id")
	})
	rnd := rand.New(rand.NewPCG(1, 2))
	want := map[string]valuesOf{}
	const requests, spans = 40, 100
	for request := range requests {
		sent := otlptest.Resource{Attributes: []otlptest.Attribute{{"service.name", fmt.Sprint("service-", request%11)}}}
		var all []otlptest.Span
		for i := range spans {
			tokens := map[string]int{"input": rnd.IntN(200_000), "output": rnd.IntN(5_000)}
			all = append(all, valueSpan(uint64(request*spans+i+1), otlptest.Attribute{"gen_ai.operation.name", "chat"},
				otlptest.Attribute{"gen_ai.request.model", fmt.Sprint("model-", rnd.IntN(1000))},
				otlptest.Attribute{"tenant.id", fmt.Sprint("tenant-", rnd.IntN(1000))},
				otlptest.Attribute{"gen_ai.usage.input_tokens", tokens["input"]},
				otlptest.Attribute{"gen_ai.usage.output_tokens", tokens["output"]}))
			for kind, n := range tokens {
				want[kind] = valuesOf{want[kind].sum + float64(n), want[kind].count + 1}
			}
		}
		sent.Scopes = [][]otlptest.Span{all}
		exportSpans(t, at, otlptest.Request(sent))
	}
	got := scrapeValues(t, p, "gen_ai_client_token_usage", 2*requests*spans, "gen_ai_token_type")
	total := valuesOf{}
	for kind, values := range got { // overflow series have no type of tokens
		total = valuesOf{total.sum + values.sum, total.count + values.count}
		if values.sum > want[kind].sum && kind != "" {
			t.Errorf("%s tokens: %+v, sent %+v", kind, values, want[kind])
		}
	}
	if sent := (valuesOf{want["input"].sum + want["output"].sum, 2 * requests * spans}); total != sent {
		t.Errorf("tokens %+v, sent %+v", total, sent)
	}
	accounting := p.Accounting()
	if accounting.Received != requests*spans || accounting.Values.Received != 3*requests*spans {
		t.Errorf("the accounting has %d spans and %+v values", accounting.Received, accounting.Values)
	}
	p.stop()
}

// TestMeasure_IntegersAndDoubles checks sums of integers and doubles, in the labels that the measure names, and the
// reasons for which values are refused.
func TestMeasure_IntegersAndDoubles(t *testing.T) {
	t.Parallel()
	p, at := startMeasuring(t, "order.value=order.total,EUR,region items=items")
	spans := []otlptest.Span{
		valueSpan(1, otlptest.Attribute{"order.total", 0.1}, otlptest.Attribute{"region", "eu"}, otlptest.Attribute{"items", 3}),
		valueSpan(2, otlptest.Attribute{"order.total", 20}, otlptest.Attribute{"region", "eu"}, otlptest.Attribute{"items", 0}),
		valueSpan(3, otlptest.Attribute{"order.total", 5.25}, otlptest.Attribute{"region", "us"}),
		valueSpan(4, otlptest.Attribute{"order.total", "12"}, otlptest.Attribute{"items", -1}),
		valueSpan(5, otlptest.Attribute{"order.total", 1e11}, otlptest.Attribute{"items", true}),
	}
	spans[2].Code = otlptest.Error
	exportSpans(t, at, otlptest.SDKRequest(spans...))
	got := scrapeValues(t, p, "order_value_EUR", 3, "region", "span_name", "status_code")
	if want := (map[string]valuesOf{"eu": {20.1, 2}, "us": {5.25, 1}}); !maps.Equal(got, want) {
		t.Errorf("values %v, want %v", got, want)
	}
	got = scrapeValues(t, p, "items", 2, "span_name", "status_code")
	if want := (map[string]valuesOf{"call STATUS_CODE_UNSET": {3, 2}}); !maps.Equal(got, want) {
		t.Errorf("values %v, want %v", got, want)
	}
	for reason, want := range map[string]float64{"not_a_number": 2, "negative": 1, "too_large": 1, "too_many": 0} {
		if refused := p.metric(`spanstatsd_values_refused_total{reason="` + reason + `"}`); refused != want {
			t.Errorf("%g values are refused as %s, want %g", refused, reason, want)
		}
	}
	p.stop()
}

// TestMeasure_Presets sends spans with the attributes of the presets for HTTP and messaging. Server and client spans
// have metrics of their own.
func TestMeasure_Presets(t *testing.T) {
	t.Parallel()
	p, at := startMeasuring(t, "http.body messaging.batch")
	served := valueSpan(1, otlptest.Attribute{"http.request.method", "PUT"}, otlptest.Attribute{"http.request.body.size", 100},
		otlptest.Attribute{"http.response.body.size", 7})
	served.Kind = spantable.KindServer
	called := valueSpan(2, otlptest.Attribute{"http.method", "PUT"}, otlptest.Attribute{"http.request_content_length", 30})
	sent := valueSpan(3, otlptest.Attribute{"messaging.batch.message_count", 12})
	exportSpans(t, at, otlptest.SDKRequest(served, called, sent))
	for metric, sum := range map[string]float64{
		"http_server_request_body_size_bytes": 100, "http_server_response_body_size_bytes": 7,
		"http_client_request_body_size_bytes": 30, "messaging_batch_message_count": 12,
	} {
		if got := scrapeValues(t, p, metric, 1); got[""] != (valuesOf{sum, 1}) {
			t.Errorf("%s: %v, want %g", metric, got, sum)
		}
	}
	p.stop()
}

// TestMeasure_OverOTLP exports values as OTLP metrics with either temporality, to a receiver that answers every third
// payload with an error that is retried. The sum of all values arrives once.
func TestMeasure_OverOTLP(t *testing.T) {
	for _, temporality := range []exporting.Temporality{exporting.Delta, exporting.Cumulative} {
		t.Run(string(temporality), func(t *testing.T) {
			t.Parallel()
			receiver := &valueReceiver{isDelta: temporality == exporting.Delta, sums: map[string]float64{}}
			server := httptest.NewServer(collector.Handler(receiver.receive))
			defer server.Close()
			p, at := startMeasuring(t, "bytes=bytes,By", func(c *daemon.Config) {
				endpoint, err := exporting.ParseEndpoint(server.URL)
				if err != nil {
					t.Fatal(err)
				}
				x, err := exporting.New(exporting.Config{
					Variables: exporting.Variables{Endpoint: endpoint}, Temporality: temporality, Measures: c.OTLP.Labels.Measures,
				})
				if err != nil {
					t.Fatal(err)
				}
				c.Exporters = []export.Exporter{x.Describe()}
			})
			want := 0.0
			for request := range 30 {
				var spans []otlptest.Span
				for i := range 20 {
					bytes := request*1000 + i
					want += float64(bytes)
					spans = append(spans, valueSpan(uint64(100*request+i+1), otlptest.Attribute{"bytes", bytes}))
				}
				exportSpans(t, at, otlptest.SDKRequest(spans...))
				time.Sleep(100 * time.Millisecond) // so that several intervals have values
			}
			eventually.True(t, "the receiver has all values", func() bool { return receiver.sum() >= want })
			p.stop()
			if got := receiver.sum(); got != want || receiver.refused == 0 {
				t.Errorf("%g bytes, want %g; %d payloads refused", got, want, receiver.refused)
			}
		})
	}
}

// valueReceiver receives OTLP metrics, and keeps the sum of the metric bytes for each series. It refuses every third
// payload with values.
type valueReceiver struct {
	isDelta bool

	mu                sync.Mutex
	sums              map[string]float64 // by series
	payloads, refused int
}

func (r *valueReceiver) receive(request collector.Request) (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(request) > 0 && len(request[0].Scopes) > 0 {
		r.payloads++
		if r.payloads%3 == 0 {
			r.refused++
			return http.StatusServiceUnavailable
		}
	}
	for _, metric := range request.Metrics() {
		if metric.Name == "bytes" {
			r.add(metric)
		}
	}
	return http.StatusOK
}

// add adds the points of the metric. The caller holds the lock.
func (r *valueReceiver) add(m *collector.Metric) {
	for _, point := range m.Points {
		key := fmt.Sprint(point.Attributes)
		if r.isDelta {
			r.sums[key] += point.Sum
		} else {
			r.sums[key] = point.Sum
		}
	}
}

// sum returns the sum of all series.
func (r *valueReceiver) sum() (sum float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, series := range r.sums {
		sum += series
	}
	return sum
}
