package spanstatsd_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/spanstatsd/spanstatsd/client"
	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// vector is a span and the key under which the daemon counts it, from the test vectors that all clients share.
type vector struct {
	Name, Service, Span, Kind, Status string
	IsRoot                            bool `json:"root"`
	Attributes                        [][3]string
	Labels                            labels
	LabelsAsSent                      *labels `json:"labels_as_sent"` // if they differ
	Key                               string  // hex
	Flags                             int
}

// labels are the labels of a vector that depend on the rule for names.
type labels struct {
	Resource string
	Endpoint string `json:"http_endpoint"`
}

// TestLabels_NamesAsSent checks that SPANSTATSD_SPAN_NAMES=as-sent counts spans under the names that they have.
func TestLabels_NamesAsSent(t *testing.T) {
	t.Setenv("SPANSTATSD_SPAN_NAMES", "as-sent")
	different := 0
	for _, v := range readVectors(t) {
		want := v.Labels
		if v.LabelsAsSent != nil {
			want = *v.LabelsAsSent
			different++
		}
		key, _, _ := spanstatsd.KeyOf(v.end(t))
		if key.Resource != want.Resource || key.HTTPEndpoint != want.Endpoint {
			t.Errorf("%s: %q, %q, want %+v", v.Name, key.Resource, key.HTTPEndpoint, want)
		}
	}
	if different < 20 {
		t.Errorf("only %d vectors have other names by convention", different)
	}
	t.Setenv("SPANSTATSD_SPAN_NAMES", "short")
	if _, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{}); err == nil || !strings.Contains(err.Error(), `"short"`) {
		t.Errorf("an unknown rule for names: %v", err)
	}
}

// TestLabels_EqualTheDaemons checks that each span of the shared vectors gets the labels that the daemon counts it
// under if it is received over OTLP.
func TestLabels_EqualTheDaemons(t *testing.T) {
	for _, v := range readVectors(t) {
		key, isError, isTopLevel := spanstatsd.KeyOf(v.end(t))
		if got := hex.EncodeToString(wire.AppendKey(nil, &key)); got != v.Key {
			t.Errorf("%s: %+v is not the key of the daemon, %s", v.Name, key, v.Key)
		}
		if isError != (v.Flags&1 != 0) || isTopLevel != (v.Flags&2 != 0) {
			t.Errorf("%s: error %v, top level %v, flags of the daemon %d", v.Name, isError, isTopLevel, v.Flags)
		}
	}
}

// TestLabels_MetricAttributes checks that the attributes of the conventions' metrics are labels only if the program
// wants them.
func TestLabels_MetricAttributes(t *testing.T) {
	v := vector{Service: "shop", Span: "GET /", Kind: "server", Attributes: [][3]string{
		{"http.request.method", "string", "GET"}, {"url.scheme", "string", "http"}, {"server.port", "int", "80"},
	}}
	s := v.end(t)
	if key, _, _ := spanstatsd.KeyOf(s); len(key.PeerTags) > 0 {
		t.Errorf("by default the span has the tags %q", key.PeerTags)
	}
	if got := spanstatsd.KeyForMetrics(s).PeerTags; !slices.Equal(got, []string{"url.scheme:http"}) {
		t.Errorf("with MetricAttributes the span has the tags %q", got)
	}
}

func readVectors(t *testing.T) (vectors []vector) {
	t.Helper()
	content, err := os.ReadFile("../../internal/rules/otel/testdata/labels.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &vectors); err != nil || len(vectors) < 300 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	return vectors
}

// end returns the span of the vector, ended. The SDK keeps the last value of a repeated attribute and the daemon the
// first, so only the first one is set.
func (v *vector) end(t *testing.T) sdktrace.ReadOnlySpan {
	t.Helper()
	var attributes []attribute.KeyValue
	isSet := map[string]bool{}
	for _, a := range v.Attributes {
		if !isSet[a[0]] {
			attributes = append(attributes, parseAttribute(t, a))
		}
		isSet[a[0]] = true
	}
	kinds := map[string]trace.SpanKind{
		"server": trace.SpanKindServer, "client": trace.SpanKindClient, "producer": trace.SpanKindProducer,
		"consumer": trace.SpanKindConsumer, "internal": trace.SpanKindInternal,
	}
	ended, provider := providerOf(v.Service)
	ctx := t.Context()
	if !v.IsRoot {
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled,
		}))
	}
	_, s := provider.Tracer("test").Start(ctx, v.Span, trace.WithSpanKind(kinds[v.Kind]), trace.WithAttributes(attributes...))
	switch v.Status {
	case "ok":
		s.SetStatus(codes.Ok, "")
	case "error":
		s.SetStatus(codes.Error, "")
	}
	s.End()
	return ended.last
}

func parseAttribute(t *testing.T, a [3]string) attribute.KeyValue {
	t.Helper()
	name, text := a[0], a[2]
	switch a[1] {
	case "string":
		return attribute.String(name, text)
	case "bool":
		return attribute.Bool(name, text == "true")
	case "int":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return attribute.Int64(name, n)
	case "double":
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return attribute.Float64(name, f)
	case "list":
		return attribute.StringSlice(name, nil)
	}
	t.Fatalf("an attribute of type %q", a[1])
	return attribute.KeyValue{}
}

// lastSpan is a span processor that keeps the last ended span.
type lastSpan struct{ last sdktrace.ReadOnlySpan }

func (*lastSpan) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (l *lastSpan) OnEnd(s sdktrace.ReadOnlySpan)                 { l.last = s }
func (*lastSpan) Shutdown(context.Context) error                  { return nil }
func (*lastSpan) ForceFlush(context.Context) error                { return nil }

// providerOf returns a provider for spans of a service, and a processor that keeps the last one.
func providerOf(service string) (*lastSpan, *sdktrace.TracerProvider) {
	ended := &lastSpan{}
	return ended, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", service))))
}

// TestLabels_OfUnusualSpans checks that spans with the longest and strangest texts are counted under the labels that
// the protocol permits.
func TestLabels_OfUnusualSpans(t *testing.T) {
	ended, provider := providerOf("shop")
	long := strings.Repeat("é", 1<<20)
	for name, attributes := range map[string][]attribute.KeyValue{
		"":     {attribute.Key("http.route").String(""), attribute.KeyValue{Key: "", Value: attribute.StringValue("x")}},
		long:   {attribute.String("http.route", long), attribute.String("db.query.text", long)},
		"\xff": {attribute.String("http.request.method", "\xff\x00"), attribute.StringSlice("http.route", []string{long})},
	} {
		_, s := provider.Tracer("test").Start(t.Context(), name, trace.WithAttributes(attributes...),
			trace.WithSpanKind(trace.SpanKindServer))
		s.End()
		key, _, _ := spanstatsd.KeyOf(ended.last)
		if encoded := client.EncodeKey(key); encoded == nil || key.Service != "shop" {
			t.Errorf("a span named %.10q has the key %.200v", name, key)
		}
	}
}

// TestOrigin_OfResource checks that a process has the origin that the daemon derives from its resource over OTLP.
func TestOrigin_OfResource(t *testing.T) {
	origin := spanstatsd.OriginOf(resource.NewSchemaless(
		attribute.String("service.name", "shop"), attribute.String("service.version", "1.2"),
		attribute.String("deployment.environment.name", "prod"), attribute.String("service.instance.id", "i-1"),
		attribute.String("telemetry.sdk.language", "go"), attribute.String("telemetry.sdk.version", "1.40.0"),
		attribute.String("k8s.pod.name", "shop-0"), attribute.String("process.command", "/shop"),
	))
	want := client.Origin{
		Service: "shop", Version: "1.2", Env: "prod", RuntimeID: "i-1", Lang: "go", TracerVersion: "otlp-1.40.0",
		Attributes: origin.Attributes,
	}
	if origin != want || !strings.Contains(origin.Attributes, "shop-0") || strings.Contains(origin.Attributes, "/shop") {
		t.Errorf("%+v, want %+v", origin, want)
	}
	if unnamed := spanstatsd.OriginOf(resource.Empty()); unnamed.Service != "unknown_service" {
		t.Errorf("without a service: %+v", unnamed)
	}
}
