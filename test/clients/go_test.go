package clients

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
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/spanstatsd/spanstatsd/client"
	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
)

// TestGo_EqualsOTLP checks that a daemon which gets spans from the span processor exports the same series as one that
// gets the same spans over OTLP, and that both have every span.
func TestGo_EqualsOTLP(t *testing.T) {
	oracle, series, spans := sendBothWays(t, 600, false)
	oracle.check(t, series, spans, 0)
}

// TestGo_MetricsEqualOTLP checks the same for the metrics of OpenTelemetry's conventions.
func TestGo_MetricsEqualOTLP(t *testing.T) {
	_, series, spans := sendBothWays(t, 200, true, "--otlp-dialect=conventions")
	counted := int64(0)
	for _, calls := range series {
		counted += calls
	}
	if counted != spans {
		t.Errorf("%d of %d spans are in metrics:\n%s", counted, spans, lines(series))
	}
}

// sendBothWays sends the spans of a shop to one daemon from the span processor, and to another over OTLP. It checks
// that both export the same series, and returns these, the oracle and the number of spans.
func sendBothWays(t *testing.T, requests int, hasMetricAttributes bool, flags ...string) (
	o *oracle, series map[string]int64, spans int64,
) {
	t.Helper()
	native, overOTLP := newPod(t, flags...), newPod(t, flags...)
	o = &oracle{ended: map[string]int64{}}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(shopResource), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithSpanProcessor(o), sdktrace.WithSpanProcessor(newProcessor(t, native, hasMetricAttributes)),
		sdktrace.WithBatcher(newExporter(t, overOTLP, nil), sdktrace.WithBlocking()),
	)
	shop := newShop(t, provider)
	shop.request(requests)
	o.await(shop.spans)
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	native.end(syscall.SIGTERM)
	overOTLP.end(syscall.SIGTERM)
	series, want := native.series(), overOTLP.series()
	if !maps.Equal(series, want) {
		t.Errorf("series of the span processor:\n%s\nof OTLP:\n%s", lines(series), lines(want))
	}
	return o, series, shop.spans
}

// TestGo_SampledAcrossRestarts checks that every span is counted once although the SDK exports only one trace in a
// hundred, to the same daemon, while that daemon is stopped and killed.
func TestGo_SampledAcrossRestarts(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.01")
	sampler, err := spanstatsd.SamplerFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	p := newPod(t)
	oracle := &oracle{ended: map[string]int64{}}
	processor := newProcessor(t, p, false)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(shopResource), sdktrace.WithSampler(spanstatsd.AlwaysRecord(sampler)),
		sdktrace.WithSpanProcessor(oracle), sdktrace.WithSpanProcessor(processor),
		sdktrace.WithBatcher(newExporter(t, p, spanstatsd.ExporterHeaders())),
	)
	shop := newShop(t, provider)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		shop.request(500)
		p.end(signal)
		shop.request(100)
		p.start()
		shop.request(500)
	}
	oracle.await(shop.spans)
	if err := processor.ForceFlush(t.Context()); err != nil {
		t.Error(err)
	}
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	p.end(syscall.SIGTERM)
	stats := processor.Stats()
	if sum(stats.Refused) > 0 || sum(stats.Lost) > stats.Ambiguous+stats.Unconfirmed {
		t.Errorf("spans are refused or lost: %+v", stats)
	}
	// A killed daemon may have exported the spans whose payload it was sending; the client reports their number.
	oracle.check(t, p.series(), shop.spans, stats.Ambiguous+stats.Unconfirmed)
	if oracle.sampled == 0 || oracle.sampled*20 > oracle.total() {
		t.Errorf("%d of %d spans are sampled", oracle.sampled, oracle.total())
	}
}

func sum(byReason map[string]uint64) (n uint64) {
	for _, spans := range byReason {
		n += spans
	}
	return n
}

var shopResource = resource.NewSchemaless(
	attribute.String("service.name", "shop"), attribute.String("service.version", "1.2"),
	attribute.String("deployment.environment.name", "test"), attribute.String("telemetry.sdk.language", "go"),
)

func newProcessor(t *testing.T, p *pod, metricAttributes bool) *spanstatsd.SpanProcessor {
	t.Helper()
	processor, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{
		Resource: shopResource, MetricAttributes: metricAttributes,
		Client: client.Config{Socket: p.socket, MaxBackoff: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return processor
}

func newExporter(t *testing.T, p *pod, headers map[string]string) sdktrace.SpanExporter {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithInsecure(), otlptracehttp.WithEndpoint(p.otlp),
		otlptracehttp.WithHeaders(headers))
	if err != nil {
		t.Fatal(err)
	}
	return exporter
}

// oracle is a span processor that counts the ended spans by name, kind and status, and those that are sampled.
type oracle struct {
	mu      sync.Mutex
	ended   map[string]int64
	sampled int64
}

func (*oracle) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (*oracle) Shutdown(context.Context) error                  { return nil }
func (*oracle) ForceFlush(context.Context) error                { return nil }

func (o *oracle) OnEnd(s sdktrace.ReadOnlySpan) {
	name := strings.TrimPrefix(s.Name(), "HTTP ") // otelhttp's clients put it before the method; the conventions do not
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[fmt.Sprintf("span.kind=SPAN_KIND_%s0 span.name=%s0", strings.ToUpper(s.SpanKind().String()), name)]++
	if s.SpanContext().IsSampled() {
		o.sampled++
	}
}

// await waits until a number of spans have ended. The span of a server ends after its client has the response.
func (o *oracle) await(spans int64) {
	for deadline := time.Now().Add(10 * time.Second); o.total() < spans && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

func (o *oracle) total() (n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, spans := range o.ended {
		n += spans
	}
	return n
}

// check compares the exported series with the ended spans, whose number must be want. Up to ambiguous spans may be
// missing.
func (o *oracle) check(t *testing.T, series map[string]int64, want int64, ambiguous uint64) {
	t.Helper()
	if o.total() != want {
		t.Errorf("%d spans have ended, not %d", o.total(), want)
	}
	exported := map[string]int64{}
	for name, calls := range series {
		for label := range o.ended {
			if strings.Contains(name+" ", label+" ") {
				exported[label] += calls
			}
		}
	}
	missing := int64(0)
	for label, ended := range o.ended {
		if exported[label] > ended {
			t.Errorf("%s: %d spans are counted, %d have ended", label, exported[label], ended)
		}
		missing += ended - exported[label]
	}
	if missing > int64(ambiguous) {
		t.Errorf("%d of %d spans are not counted, and %d are ambiguous; series:\n%s\nended:\n%s", missing, o.total(),
			ambiguous, lines(series), lines(o.ended))
	}
	t.Logf("%d spans ended, %d are counted, %d are ambiguous", o.total(), o.total()-missing, ambiguous)
}

// lines returns numbers by name, one per line.
func lines(numbers map[string]int64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		all = append(all, fmt.Sprintf("%6d %s", numbers[name], name))
	}
	return strings.Join(all, "\n")
}

// shop is an HTTP server that calls a gRPC server, and a client of it, all with published instrumentations.
type shop struct {
	t      *testing.T
	server *httptest.Server
	client http.Client
	spans  int64 // number of spans of all requests
}

func newShop(t *testing.T, provider *sdktrace.TracerProvider) *shop {
	t.Helper()
	traced := otelgrpc.WithTracerProvider(provider)
	stock := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(traced)))
	grpc_health_v1.RegisterHealthServer(stock, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = stock.Serve(listener) }()
	t.Cleanup(stock.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(traced)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })

	mux := http.NewServeMux()
	mux.HandleFunc("GET /carts/{id}", func(w http.ResponseWriter, r *http.Request) {
		service := "" // the whole server
		if strings.HasSuffix(r.URL.Path, "7") {
			service = "unknown" // an error of the gRPC call and of this request
		}
		if _, err := grpc_health_v1.NewHealthClient(conn).Check(r.Context(),
			&grpc_health_v1.HealthCheckRequest{Service: service}); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	options := []otelhttp.Option{
		otelhttp.WithTracerProvider(provider), otelhttp.WithPropagators(propagation.TraceContext{}),
	}
	s := &shop{t: t, server: httptest.NewServer(otelhttp.NewHandler(mux, "shop", options...))}
	t.Cleanup(s.server.Close)
	s.client.Transport = otelhttp.NewTransport(http.DefaultTransport, options...)
	return s
}

// request sends n requests, on a few connections at the same time.
func (s *shop) request(n int) {
	s.t.Helper()
	const senders = 4
	var sending sync.WaitGroup
	for sender := range senders {
		sending.Go(func() {
			for i := sender; i < n; i += senders {
				if err := s.send(i); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	sending.Wait()
	for i := range n {
		if s.spans += 4; isOrder(i) { // one of the client and one of the server, for each of two protocols
			s.spans -= 2
		}
	}
}

// isOrder reports whether a request is an order, which calls no other service.
func isOrder(i int) bool { return i%5 == 0 }

// send sends a request: an order, or one for one of 20 carts.
func (s *shop) send(i int) error {
	var response *http.Response
	var err error
	if isOrder(i) {
		response, err = s.client.Post(s.server.URL+"/orders", "text/plain", nil)
	} else {
		response, err = s.client.Get(fmt.Sprintf("%s/carts/%d", s.server.URL, i%20))
	}
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
