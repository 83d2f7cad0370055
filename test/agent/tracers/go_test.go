package tracers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/ext"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
)

// shop is a small web application with manual tracing.
func shop(w http.ResponseWriter, r *http.Request) {
	span, ctx := tracer.StartSpanFromContext(r.Context(), "http.request",
		tracer.ResourceName(r.Method+" "+r.URL.Path), tracer.SpanType(ext.SpanTypeWeb),
		tracer.Tag(ext.SpanKind, ext.SpanKindServer), tracer.Tag(ext.HTTPMethod, r.Method))
	status := http.StatusOK
	if err := query(ctx, r.URL.Path); err != nil {
		status = http.StatusInternalServerError
		span.SetTag(ext.Error, err)
	}
	render(ctx)
	span.SetTag(ext.HTTPCode, fmt.Sprint(status))
	w.WriteHeader(status)
	span.Finish()
}

func query(ctx context.Context, path string) (err error) {
	span, _ := tracer.StartSpanFromContext(ctx, "postgres.query", tracer.ServiceName("shop-db"),
		tracer.SpanType("db"),
		tracer.ResourceName("orders of "+path), tracer.Tag(ext.SpanKind, ext.SpanKindClient),
		tracer.Tag("out.host", "10.1.2.3:5432"), tracer.Tag("db.name", "orders"))
	if strings.HasSuffix(path, "3") {
		err = errors.New("no such order")
	}
	span.Finish(tracer.WithError(err))
	return err
}

func render(ctx context.Context) {
	span, ctx := tracer.StartSpanFromContext(ctx, "render", tracer.Measured())
	inner, _ := tracer.StartSpanFromContext(ctx, "render.part")
	inner.Finish()
	span.Finish()
}

// The load: requests per user, users, and counted spans per request.
const (
	users     = 8
	requests  = 800
	spansEach = 3
)

func load(t *testing.T, url string) {
	var load sync.WaitGroup
	for user := range users {
		load.Go(func() {
			for i := range requests / users {
				resp, err := http.Get(fmt.Sprintf("%s/order/%d", url, (user+i)%5))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	load.Wait()
}

// complaints collects the errors that the tracer logs.
type complaints struct {
	mu    sync.Mutex
	lines []string
}

func (c *complaints) Log(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(line, "ERROR") {
		c.lines = append(c.lines, line)
	}
}

// TestGo runs the published dd-trace-go with each of its protocols: with statistics left to the agent,
// with client-computed statistics, and with unsampled traces dropped before the agent.
func TestGo(t *testing.T) {
	for _, s := range []setting{
		{protocol: "0.4"},
		{protocol: "0.4", computes: true},
		{protocol: "0.4", drop: true},
		{protocol: "1.0"},
		{protocol: "1.0", computes: true},
		{protocol: "1.0", drop: true},
	} {
		t.Run(s.String(), func(t *testing.T) {
			t.Setenv("DD_TRACE_AGENT_PROTOCOL_VERSION", s.protocol)
			t.Setenv("DD_INSTRUMENTATION_TELEMETRY_ENABLED", "false")
			t.Setenv("DD_REMOTE_CONFIGURATION_ENABLED", "false")
			t.Setenv("DD_TRACE_SAMPLE_RATE", s.rate())
			t.Setenv("DD_TRACE_RATE_LIMIT", "100000")
			testGo(t, s)
		})
	}
}

func testGo(t *testing.T, s setting) {
	p := startPair(t, s)
	runGoShop(t, p, s)
	o := p.compare(t, s)
	if s.computes {
		o.counted = o.byTracer
	}
	if o.counted != requests*spansEach || o.left != 0 || !s.drop && o.spans != requests*(spansEach+1) {
		t.Errorf("%+v", o)
	}
}

// runGoShop runs the application once, with its tracer in front of the pair.
func runGoShop(t *testing.T, p *pair, s setting) {
	var said complaints
	if err := tracer.Start(tracer.WithUDS(p.fork.socket), tracer.WithService("shop"), tracer.WithEnv("test"),
		tracer.WithServiceVersion("1.2"),
		tracer.WithStatsComputation(s.computes), tracer.WithLogger(&said),
		tracer.WithLogStartup(false)); err != nil {
		t.Fatal(err)
	}
	app := httptest.NewServer(http.HandlerFunc(shop))
	load(t, app.URL)
	app.Close()
	if file := os.Getenv("SHOP_ODD"); file != "" {
		oddSpans(t, file)
	}
	tracer.Flush()
	tracer.Stop()
	if len(said.lines) > 0 {
		t.Errorf("the tracer complains: %q", said.lines)
	}
}
