package otel

import (
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// TestSDK_SelfMetrics checks that the daemon reports the same numbers of sampled-out spans and
// spans dropped from the queue as its SDK, and the same number of received spans as its own accounting.
func TestSDK_SelfMetrics(t *testing.T) {
	t.Setenv("OTEL_GO_X_OBSERVABILITY", "true")
	d := start(t, "--otlp-forward", startReceiver(t).url)
	spans := newExporter(t, d, false, true)
	sums, err := otlpmetrichttp.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	meters := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(sums)))
	otel.SetMeterProvider(meters)
	t.Cleanup(func() { otel.SetMeterProvider(noop.NewMeterProvider()) })
	const queue, traces = 16, 5000
	tracers := sdk.NewTracerProvider(sdk.WithSampler(sdk.TraceIDRatioBased(0.5)),
		sdk.WithBatcher(spans, sdk.WithMaxQueueSize(queue), sdk.WithMaxExportBatchSize(queue)))
	work(t.Context(), tracers.Tracer("test"), traces)
	if err := tracers.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := meters.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := d.status(t)
	if s.SDKs == nil {
		t.Fatal("nothing is heard")
	}
	said := *s.SDKs
	if said.Started != 2*traces || said.Dropped == 0 || said.Failed != 0 ||
		said.Sampled != said.Exported+said.Dropped || said.Exported != s.Accounting.Received {
		t.Errorf("SDKs say %+v; accounting %+v", said, s.Accounting)
	}
	if off := int64(said.Sampled) - traces; off < -5*100 || off > 5*100 { // seven standard deviations
		t.Errorf("%d of %d spans are sampled", said.Sampled, 2*traces)
	}
	t.Logf("%+v", said)
}
