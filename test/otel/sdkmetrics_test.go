package otel

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
)

// metricsReceiver receives histograms of durations from an SDK and from the daemon.
type metricsReceiver struct {
	url         string
	mu          sync.Mutex
	sdk, daemon map[string]*histogram // by metric
}

// histogram is a metric with explicit buckets.
type histogram struct {
	unit   string
	bounds []float64
	series []series
}

// series are the attributes of a series and its count.
type series struct {
	service    string
	attributes map[string]string
	count      uint64
}

func startMetricsReceiver(t *testing.T) *metricsReceiver {
	t.Helper()
	r := &metricsReceiver{sdk: map[string]*histogram{}, daemon: map[string]*histogram{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL + "/v1/metrics"
	return r
}

// ServeHTTP receives a request with metrics.
func (r *metricsReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	var decoded collector.ExportMetricsServiceRequest
	if err := proto.Unmarshal(body, &decoded); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range decoded.ResourceMetrics {
		service := valuesOf(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.ScopeMetrics {
			sender := r.sdk
			if scope.GetScope().GetName() == "spanstatsd" {
				sender = r.daemon
			}
			for _, m := range scope.Metrics {
				addHistogram(sender, service, m)
			}
		}
	}
}

// addHistogram adds the points of a metric, unless it has none with explicit buckets.
func addHistogram(to map[string]*histogram, service string, m *metrics.Metric) {
	for _, p := range m.GetHistogram().GetDataPoints() {
		h := to[m.Name]
		if h == nil {
			h = &histogram{unit: m.Unit, bounds: p.ExplicitBounds}
			to[m.Name] = h
		}
		h.series = append(h.series, series{service, valuesOf(p.Attributes), p.Count})
	}
}

func valuesOf(list []*common.KeyValue) map[string]string {
	values := map[string]string{}
	for _, attribute := range list {
		switch v := attribute.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			values[attribute.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			values[attribute.Key] = fmt.Sprint("integer ", v.IntValue)
		default:
			values[attribute.Key] = attribute.Value.String()
		}
	}
	return values
}

// difference is a known difference between the metrics of an SDK and those of the daemon, which docs/sdk-metrics.md
// lists.
type difference struct {
	metric, attribute string
	of                side
}

// side is the sender of the metrics that have an attribute.
type side string

const (
	onlySDK    side = "only the SDK has it"
	onlyDaemon side = "only the daemon has it"
	unequal    side = "the values differ"
)

// The metrics for HTTP.
const (
	serverDuration = "http.server.request.duration"
	clientDuration = "http.client.request.duration"
)

// compare compares the metrics of the SDK, of which there are at least the given ones, with the daemon's.
func (r *metricsReceiver) compare(t *testing.T, names []string, known []difference) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		ofSDK, ofDaemon := r.sdk[name], r.daemon[name]
		if ofSDK == nil || ofDaemon == nil {
			t.Errorf("%s: the SDK has it: %t, the daemon has it: %t", name, ofSDK != nil, ofDaemon != nil)
			continue
		}
		if ofSDK.unit != ofDaemon.unit || !slices.Equal(ofSDK.bounds, ofDaemon.bounds) {
			t.Errorf("%s in %q with the bounds %v, want %q, %v", name, ofDaemon.unit, ofDaemon.bounds, ofSDK.unit,
				ofSDK.bounds)
		}
		for _, d := range known {
			if d.metric != name {
				continue
			}
			if ofSDK.has(d.attribute) == (d.of == onlyDaemon) || ofDaemon.has(d.attribute) == (d.of == onlySDK) {
				t.Errorf("%s, %s: it is not true any more that %s", name, d.attribute, d.of)
			}
			ofSDK.remove(d.attribute)
			ofDaemon.remove(d.attribute)
		}
		if got, want := ofDaemon.counts(), ofSDK.counts(); !maps.Equal(got, want) {
			t.Errorf("%s has the series\n%s\nwant\n%s", name, lines(got), lines(want))
		} else {
			t.Logf("%s has equal counts in\n%s", name, lines(got))
		}
	}
}

// has reports whether a series has the attribute.
func (h *histogram) has(attribute string) bool {
	return slices.ContainsFunc(h.series, func(s series) bool { return s.attributes[attribute] != "" })
}

// remove removes an attribute from all series.
func (h *histogram) remove(attribute string) {
	for _, s := range h.series {
		delete(s.attributes, attribute)
	}
}

// counts returns the counts by service and attributes.
func (h *histogram) counts() map[string]uint64 {
	counts := map[string]uint64{}
	for _, s := range h.series {
		counts[s.service+" "+strings.TrimPrefix(fmt.Sprint(s.attributes), "map")] += s.count
	}
	return counts
}

func lines(counts map[string]uint64) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&text, "%6d %s\n", counts[name], name)
	}
	return text.String()
}

// startForMetrics starts a daemon that sends the metrics of the conventions to r.
func (r *metricsReceiver) startForMetrics(t *testing.T) *daemon {
	t.Helper()
	return start(t, "--otlp-metrics-endpoint", r.url, "--otlp-dialect", "conventions", "--otlp-instance-id", "none")
}

// TestMetrics_EqualGo compares the metrics that Go's SDK records for HTTP and gRPC requests with those that the daemon
// derives from the spans of the same requests.
func TestMetrics_EqualGo(t *testing.T) {
	r := startMetricsReceiver(t)
	d := r.startForMetrics(t)
	spans := sdk.NewTracerProvider(sdk.WithBatcher(newExporter(t, d, false, false), sdk.WithBlocking()))
	exporter, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(r.url))
	if err != nil {
		t.Fatal(err)
	}
	// All measurements are sent at the end.
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(exporter, metric.WithInterval(time.Hour))))
	requestHTTP(t, spans, meters)
	callGRPC(t, spans, meters)
	for _, err := range []error{spans.Shutdown(t.Context()), meters.Shutdown(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.stop()
	r.compare(t, []string{serverDuration, clientDuration, "rpc.server.call.duration", "rpc.client.call.duration"},
		[]difference{
			{serverDuration, "network.protocol.name", onlySDK}, // http, which the conventions leave out
			{serverDuration, "server.address", onlySDK},        // opt-in
			{serverDuration, "server.port", onlySDK},           // opt-in
			{serverDuration, "error.type", onlyDaemon},         // of a status that is an error
			{clientDuration, "network.protocol.name", onlySDK},
			{clientDuration, "url.scheme", onlySDK}, // opt-in
			{clientDuration, "error.type", unequal}, // of a status, and *net.OpError instead of net.OpError
		})
}

// requestHTTP sends requests to a server with net/http, both with instrumentation.
func requestHTTP(t *testing.T, spans *sdk.TracerProvider, meters *metric.MeterProvider) {
	t.Helper()
	options := []otelhttp.Option{otelhttp.WithTracerProvider(spans), otelhttp.WithMeterProvider(meters)}
	mux := http.NewServeMux()
	mux.HandleFunc("/items/{status}", func(w http.ResponseWriter, r *http.Request) {
		status := 0
		_, _ = fmt.Sscan(r.PathValue("status"), &status)
		w.WriteHeader(status)
	})
	server := httptest.NewServer(otelhttp.NewHandler(mux, "shop", options...))
	defer server.Close()
	client := http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport, options...)}
	for i := range 50 {
		method := []string{http.MethodGet, http.MethodPost, "BREW"}[i%3]
		status := []int{200, 201, 404, 500, 503}[i%5]
		request, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprint(server.URL, "/items/", status), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body) // otherwise the client span would not end
		response.Body.Close()
	}
	_, err := client.Get("http://127.0.0.1:1/") // no server
	if err == nil {
		t.Fatal("a server listens on port 1")
	}
}

// callGRPC calls the health service of a gRPC server, both with instrumentation.
func callGRPC(t *testing.T, spans *sdk.TracerProvider, meters *metric.MeterProvider) {
	t.Helper()
	options := []otelgrpc.Option{otelgrpc.WithTracerProvider(spans), otelgrpc.WithMeterProvider(meters)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(options...)))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	go func() { _ = server.Serve(listener) }()
	defer server.GracefulStop()
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(options...)))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	client := grpc_health_v1.NewHealthClient(connection)
	for i := range 20 {
		service := []string{"", "unknown"}[i%2] // the response to the latter is NOT_FOUND
		_, _ = client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: service})
	}
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = client.Check(expired, &grpc_health_v1.HealthCheckRequest{})
}

// compareMetrics runs the shops, each with its own daemon, and compares the metrics that their SDKs record for HTTP
// requests with those of the daemons.
func (l language) compareMetrics(t *testing.T, known ...difference) {
	r := startMetricsReceiver(t)
	l.env = append(slices.Clone(l.env), "OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT="+r.url,
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta",
		"OTEL_SEMCONV_STABILITY_OPT_IN=http")
	stock := l.start(t, r.startForMetrics(t), "stock", l.protocols[0])
	orders := l.start(t, r.startForMetrics(t), "orders", l.protocols[0], "STOCK_URL="+stock.url)
	orders.request(t, 100)
	orders.stop(t)
	stock.stop(t)
	r.compare(t, []string{serverDuration, clientDuration}, known)
}
