package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// variables matches a command that only sets variables, which are those of an application.
var variables = regexp.MustCompile(`^([A-Z_]+=\S+\s*)+(#.*)?$`)

// application ends spans until it is stopped.
type application struct {
	cancel context.CancelFunc
	sent   chan uint64
	failed chan error // receives the first error, if there is one
}

// send starts an application with these variables that sends one span at a time.
func (r *reader) send(command string) {
	r.t.Helper()
	set, _, _ := strings.Cut(command, "#")
	for _, variable := range strings.Fields(set) {
		name, value, _ := strings.Cut(variable, "=")
		r.t.Setenv(name, strings.ReplaceAll(value, "$HOME", r.home))
	}
	var finish func(context.Context) error
	switch {
	case strings.Contains(set, "OTEL_EXPORTER_OTLP_ENDPOINT="):
		finish = withSDK(r.t)
	case strings.Contains(set, "DD_TRACE_AGENT_URL="):
		finish = withTracer(r.t)
	default:
		r.t.Fatalf("%s: this test has no application with these variables", command)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &application{cancel: cancel, sent: make(chan uint64, 1), failed: make(chan error, 1)}
	r.applications = append(r.applications, a)
	go a.run(ctx, finish)
}

func (a *application) run(ctx context.Context, finish func(context.Context) error) {
	sent := uint64(0)
	defer func() { a.sent <- sent }()
	for ; ctx.Err() == nil; sent++ {
		if err := finish(context.WithoutCancel(ctx)); err != nil {
			a.failed <- err
			return
		}
		select {
		case <-time.After(interval / 2):
		case <-ctx.Done():
		}
	}
}

// end stops the application and returns the number of spans sent.
func (a *application) end(t *testing.T) uint64 {
	t.Helper()
	a.cancel()
	select {
	case err := <-a.failed:
		t.Errorf("an application: %v", err)
	default:
	}
	select {
	case sent := <-a.sent:
		return sent
	case <-time.After(soon):
		t.Fatalf("waited for %s in vain: an application ends", soon)
		return 0
	}
}

// withSDK sets up the OpenTelemetry SDK for Go as its documentation shows. The returned function sends
// a span and returns the export error.
func withSDK(t *testing.T) func(context.Context) error {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of, err := resource.New(t.Context(), resource.WithFromEnv())
	if err != nil {
		t.Fatal(err)
	}
	made := &lastSpan{}
	tracer := sdk.NewTracerProvider(sdk.WithResource(of), sdk.WithSyncer(made)).Tracer("shop")
	return func(ctx context.Context) error {
		_, span := tracer.Start(ctx, "GET /cart", trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.request.method", "GET"),
				attribute.String("http.route", "/cart"), attribute.Int("http.response.status_code", 200)))
		span.End()
		return exporter.ExportSpans(ctx, made.spans)
	}
}

// lastSpan keeps the last ended spans, so that their export error can be checked.
type lastSpan struct{ spans []sdk.ReadOnlySpan }

func (l *lastSpan) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	l.spans = spans
	return nil
}

func (l *lastSpan) Shutdown(context.Context) error { return nil }

// withTracer returns a function that sends a trace with one span like a Datadog tracer.
func withTracer(t *testing.T) func(context.Context) error {
	t.Helper()
	agent, err := url.Parse(os.Getenv("DD_TRACE_AGENT_URL"))
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Client{}
	if agent.Scheme == "unix" {
		socket := agent.Path
		web.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
			error,
		) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}
		agent = &url.URL{Scheme: "http", Host: "agent"}
	}
	return func(ctx context.Context) error {
		now := time.Now().UnixNano()
		body, err := msgpack.Marshal([][]map[string]any{{{
			"service": "shop", "name": "web.request", "resource": "GET /cart", "type": "web",
			"trace_id": uint64(now), "span_id": uint64(now), "parent_id": uint64(0), "start": now - 1e6,
			"duration": int64(1e6), "error": int32(0),
			"metrics": map[string]float64{"_sampling_priority_v1": 1, "_top_level": 1},
		}}})
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, agent.String()+"/v0.4/traces",
			bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/msgpack")
		request.Header.Set("X-Datadog-Trace-Count", "1")
		answer, err := web.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("PUT /v0.4/traces: %s", answer.Status)
		}
		return nil
	}
}

// received returns the number of spans that the daemon has received, or 0.
func (r *reader) received() uint64 {
	answer, err := http.Get(page + "/status")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	var status struct {
		Accounting struct {
			Received uint64 `json:"received"`
		} `json:"accounting"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		return 0
	}
	return status.Accounting.Received
}
