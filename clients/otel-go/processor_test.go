package spanstatsd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/spanstatsd/spanstatsd/client"
	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
)

// withoutDaemon returns a processor that never finds a daemon.
func withoutDaemon(t testing.TB, provider *sdkmetric.MeterProvider) *spanstatsd.SpanProcessor {
	t.Helper()
	config := spanstatsd.Config{
		Resource: resource.NewSchemaless(attribute.String("service.name", "shop")),
		Client:   client.Config{Socket: filepath.Join(t.TempDir(), "s")},
	}
	if provider != nil {
		config.MeterProvider = provider
	}
	p, err := spanstatsd.NewSpanProcessor(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// endedSpan returns an ended span of a server with ordinary attributes.
func endedSpan(t testing.TB, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	ended, provider := providerOf("shop")
	_, s := provider.Tracer("test").Start(context.Background(), name, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(
			attribute.String("http.request.method", "GET"), attribute.String("http.route", "/carts/{id}"),
			attribute.Int("http.response.status_code", 200), attribute.String("url.path", "/carts/7"),
			attribute.String("url.scheme", "http"), attribute.String("user_agent.original", "test"),
			attribute.String("server.address", "shop"),
		))
	s.End()
	return ended.last
}

// TestSpanProcessor_WithoutDaemon checks that ended spans are buffered without waiting while there is no daemon, that
// each is accounted for, and that a shutdown reports the lost ones.
func TestSpanProcessor_WithoutDaemon(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	p := withoutDaemon(t, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	const goroutines, each = 8, 1000
	var ending sync.WaitGroup
	for g := range goroutines {
		s := endedSpan(t, fmt.Sprintf("GET /carts/%d", g))
		ending.Go(func() {
			for range each {
				p.OnEnd(s)
			}
		})
	}
	ending.Wait()
	stats := p.Stats()
	if offered := stats.Published + sum(stats.Refused); offered != goroutines*each || stats.Buffered != stats.Published {
		t.Errorf("of %d ended spans %d are accounted for: %+v", goroutines*each, offered, stats)
	}
	if published := observed(t, reader)["published"]; published != int64(stats.Published) {
		t.Errorf("the metric has %d published spans, Stats %d", published, stats.Published)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.ForceFlush(ctx); err == nil {
		t.Error("a flush succeeds without a daemon")
	}
	if err := p.Shutdown(t.Context()); err == nil {
		t.Error("a shutdown that loses spans returns no error")
	}
	p.OnEnd(endedSpan(t, "GET /"))
	after := p.Stats()
	if sum(after.Lost) != stats.Published || sum(after.Refused) != sum(stats.Refused)+1 {
		t.Errorf("after the shutdown: %+v", after)
	}
	if left := observed(t, reader); len(left) != 0 {
		t.Errorf("the metric is still there: %v", left)
	}
}

// TestSpanProcessor_ContextEndsCalls checks that flush and shutdown end with their context while a daemon does not answer,
// and that calls after the shutdown end at once.
func TestSpanProcessor_ContextEndsCalls(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	silent, err := net.Listen("unix", socket) // the kernel accepts connections, and nothing reads them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{Client: client.Config{Socket: socket}})
	if err != nil {
		t.Fatal(err)
	}
	p.OnEnd(endedSpan(t, "GET /"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := p.ForceFlush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("flush returns %v", err)
	}
	if err := p.Shutdown(ctx); err == nil {
		t.Error("a shutdown that loses a span returns no error")
	}
	if stats := p.Stats(); stats.Published != 1 || sum(stats.Lost) != 1 {
		t.Errorf("the span is not accounted for as lost: %+v", stats)
	}
	if err := p.ForceFlush(t.Context()); err == nil {
		t.Error("a flush after the shutdown returns no error")
	}
	_ = p.Shutdown(t.Context()) // returns
}

// renamedSpan is a span as wrapped by processors and forks of the SDK that change what exporters read.
type renamedSpan struct{ sdktrace.ReadOnlySpan }

func (renamedSpan) Name() string { return "GET /orders" }

// TestSpanProcessor_WrappedSpan checks that a span counts under what its methods return, whatever type implements them.
func TestSpanProcessor_WrappedSpan(t *testing.T) {
	ended, provider := providerOf("shop")
	_, s := provider.Tracer("test").Start(t.Context(), "GET /carts")
	s.End()
	if key, _, _ := spanstatsd.KeyOf(renamedSpan{ended.last}); key.Resource != "GET /orders" {
		t.Errorf("the span counts as %q", key.Resource)
	}
}

func sum(byReason map[string]uint64) (n uint64) {
	for _, spans := range byReason {
		n += spans
	}
	return n
}

// observed returns the values of the metric, by result.
func observed(t *testing.T, reader sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	values := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
				result, _ := point.Attributes.Value("result")
				values[result.AsString()] += point.Value
			}
		}
	}
	return values
}

// TestSpanProcessor_InvalidConfig checks that an invalid configuration is an error that names the field.
func TestSpanProcessor_InvalidConfig(t *testing.T) {
	_, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{Client: client.Config{BufferBytes: 1}})
	if err == nil || !strings.Contains(err.Error(), "BufferBytes") {
		t.Errorf("error %v", err)
	}
}

// TestSpanProcessor_AllocatesNothing checks that a span with known labels costs no memory.
func TestSpanProcessor_AllocatesNothing(t *testing.T) {
	p := withoutDaemon(t, nil)
	defer p.Shutdown(t.Context())
	s := endedSpan(t, "GET /carts/{id}")
	p.OnEnd(s)
	if allocations := testing.AllocsPerRun(1000, func() { p.OnEnd(s) }); allocations >= 1 {
		t.Errorf("%v allocations per span", allocations)
	}
}

// TestSpanProcessor_ManyNames checks that the memory for labels has a limit, whatever the number of different names.
func TestSpanProcessor_ManyNames(t *testing.T) {
	p := withoutDaemon(t, nil)
	defer p.Shutdown(t.Context())
	ended, provider := providerOf("shop")
	tracer := provider.Tracer("test")
	before := heap()
	for i := range 50_000 {
		_, s := tracer.Start(t.Context(), fmt.Sprintf("job %d %s", i, strings.Repeat("x", 100)))
		s.End()
		p.OnEnd(ended.last)
	}
	// The client's own tables and buffers are part of the difference.
	if grown := heap() - before; grown > spanstatsd.CacheBytes+8<<20 {
		t.Errorf("50,000 names need %d bytes", grown)
	}
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// BenchmarkOnEnd measures the time for a span with known labels.
func BenchmarkOnEnd(b *testing.B) {
	p := withoutDaemon(b, nil)
	defer p.Shutdown(context.Background())
	s := endedSpan(b, "GET /carts/{id}")
	b.ReportAllocs()
	for b.Loop() {
		p.OnEnd(s)
	}
}
