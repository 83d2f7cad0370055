package connector

import (
	"math/rand/v2"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestExporters_EachCompression tests each compression that a Collector's exporter supports. The
// exporter drops requests that are rejected with status 415.
func TestExporters_EachCompression(t *testing.T) {
	d := startDaemon(t)
	http, grpc := otlphttpexporter.NewFactory(), otlpexporter.NewFactory()
	random, spans := rand.New(rand.NewPCG(41, 15)), 0
	for _, e := range []struct {
		factory     exporter.Factory
		compression string
	}{
		{http, "none"},
		{http, "gzip"},
		{http, "zstd"},
		{http, "snappy"},
		{http, "x-snappy-framed"},
		{grpc, "none"},
		{grpc, "gzip"},
		{grpc, "zstd"},
		{grpc, "snappy"},
	} {
		config := e.factory.CreateDefaultConfig()
		endpoint := d.address
		if e.factory == http {
			endpoint = "http://" + endpoint
		}
		err := confmap.NewFromStringMap(map[string]any{
			"endpoint": endpoint, "compression": e.compression, "tls": map[string]any{"insecure": true},
			"sending_queue":    map[string]any{"enabled": false},
			"retry_on_failure": map[string]any{"enabled": false},
		}).Unmarshal(config)
		if err != nil {
			t.Fatal(err)
		}
		settings := exporter.Settings{
			ID: component.NewID(e.factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		}
		exporting, err := e.factory.CreateTraces(t.Context(), settings, config)
		if err != nil {
			t.Fatal(err)
		}
		if err := exporting.Start(t.Context(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
		for _, most := range []int{1, 500, 5000} {
			traces := someSpans(random, 1+random.IntN(most))
			if err := exporting.ConsumeTraces(t.Context(), traces); err != nil {
				t.Errorf("%s with %s: %v", e.factory.Type(), e.compression, err)
			}
			spans += traces.SpanCount()
		}
		if err := exporting.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	d.stop(spans)
}

func someSpans(random *rand.Rand, spans int) ptrace.Traces {
	traces := ptrace.NewTraces()
	to := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for range spans {
		s := to.AppendEmpty()
		s.SetName(oneOf(random, "GET /", "SELECT", "publish"))
		s.SetSpanID([8]byte{1, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
		s.SetTraceID([16]byte{1, byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())})
		s.SetStartTimestamp(1)
		s.SetEndTimestamp(1000)
	}
	return traces
}
