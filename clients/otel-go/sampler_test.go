package spanstatsd_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
)

// decider is a sampler with a fixed result.
type decider struct{ sdktrace.SamplingResult }

func (d decider) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return d.SamplingResult
}

func (decider) Description() string { return "decider" }

// TestAlwaysRecord_Decisions checks that only a drop becomes a record, and that attributes and tracestate of the inner
// sampler remain whatever it decides.
func TestAlwaysRecord_Decisions(t *testing.T) {
	state, err := trace.ParseTraceState("ot=th:c")
	if err != nil {
		t.Fatal(err)
	}
	for inner, want := range map[sdktrace.SamplingDecision]sdktrace.SamplingDecision{
		sdktrace.Drop:            sdktrace.RecordOnly,
		sdktrace.RecordOnly:      sdktrace.RecordOnly,
		sdktrace.RecordAndSample: sdktrace.RecordAndSample,
	} {
		result := sdktrace.SamplingResult{
			Decision: inner, Tracestate: state, Attributes: []attribute.KeyValue{attribute.String("a", "b")},
		}
		ended := &lastSpan{}
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended),
			sdktrace.WithSampler(spanstatsd.AlwaysRecord(decider{result})))
		_, s := provider.Tracer("test").Start(t.Context(), "GET /", trace.WithAttributes(attribute.String("c", "d")))
		s.End()
		if ended.last == nil {
			t.Errorf("decision %d: the span does not reach processors", inner)
			continue
		}
		isSampled := ended.last.SpanContext().IsSampled()
		if isSampled != (want == sdktrace.RecordAndSample) || s.SpanContext().TraceState().String() != "ot=th:c" ||
			len(ended.last.Attributes()) != 2 {
			t.Errorf("decision %d: sampled %v, tracestate %q, attributes %v", inner, isSampled,
				s.SpanContext().TraceState(), ended.last.Attributes())
		}
	}
}

// TestSamplerFromEnv checks each value that the specification defines, and invalid ones.
func TestSamplerFromEnv(t *testing.T) {
	for _, c := range []struct{ sampler, arg, want string }{
		{"", "", "ParentBased{root:AlwaysOnSampler"},
		{"always_on", "", "AlwaysOnSampler"},
		{"ALWAYS_OFF", "", "AlwaysOffSampler"},
		{"traceidratio", "0.25", "TraceIDRatioBased{0.25}"},
		{"traceidratio", "", "AlwaysOnSampler"},
		{"parentbased_always_on", "", "ParentBased{root:AlwaysOnSampler"},
		{"parentbased_always_off", "", "ParentBased{root:AlwaysOffSampler"},
		{"parentbased_traceidratio", "0.01", "ParentBased{root:TraceIDRatioBased{0.01}"},
		{"parentbased_traceidratio", "2", ""},
		{"traceidratio", "NaN", ""},
		{"traceidratio", "some", ""},
		{"jaeger_remote", "", ""},
	} {
		t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
		t.Setenv("OTEL_TRACES_SAMPLER_ARG", c.arg)
		got, err := spanstatsd.SamplerFromEnv()
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s, %s: %s instead of an error", c.sampler, c.arg, got.Description())
		case c.want != "" && (err != nil || len(got.Description()) < len(c.want) || got.Description()[:len(c.want)] != c.want):
			t.Errorf("%s, %s: %v, %v", c.sampler, c.arg, got, err)
		}
	}
}
