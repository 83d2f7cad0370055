package tracers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/DataDog/dd-trace-go/v2/ddtrace/ext"
	"github.com/DataDog/dd-trace-go/v2/ddtrace/tracer"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/health"
)

// shop is a small web application, traced as one would by hand.
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
	span, _ := tracer.StartSpanFromContext(ctx, "postgres.query", tracer.ServiceName("shop-db"), tracer.SpanType("db"),
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

// The load: so many requests of so many users, and of each so many spans that count.
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

// complaints are what the tracer logs as an error.
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

func startDaemon(t *testing.T, agent string, drop bool) (socket string, stop func() (health.Books, float64)) {
	dir := t.TempDir()
	config := daemon.DefaultConfig()
	config.Ingest.Socket.Path, config.APM.Socket.Path = filepath.Join(dir, "spans.sock"), filepath.Join(dir, "apm.sock")
	config.APM.DropUnsampled = drop
	config.HTTPAddr, config.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	config.Flush.Agent = flush.AgentURL{Network: "unix", Address: agent}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	return config.APM.Socket.Path, func() (health.Books, float64) {
		saved := unsampled(t, d.HTTPAddr())
		return d.Stop(), saved
	}
}

// unsampled is how many traces the daemon did not forward.
func unsampled(t *testing.T, addr string) (traces float64) {
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "spanstatsd_apm_unsampled_traces_total "); ok {
			if _, err := fmt.Sscan(value, &traces); err != nil {
				t.Fatal(err)
			}
		}
	}
	return traces
}

// TestGo runs dd-trace-go as it is published, with its statistics left to the agent
// and with those that it computes itself, over each of its protocols.
func TestGo(t *testing.T) {
	for _, protocol := range []string{"0.4", "1.0"} {
		for _, computes := range []bool{false, true} {
			t.Run(fmt.Sprintf("protocol %s, computes %v", protocol, computes), func(t *testing.T) {
				t.Setenv("DD_TRACE_AGENT_PROTOCOL_VERSION", protocol)
				t.Setenv("DD_INSTRUMENTATION_TELEMETRY_ENABLED", "false")
				t.Setenv("DD_REMOTE_CONFIGURATION_ENABLED", "false")
				testGo(t, computes, false)
			})
		}
	}
}

// TestGoUnsampled keeps traces that sampling threw away from the agent: its
// statistics are the same, and what it makes of the others.
func TestGoUnsampled(t *testing.T) {
	t.Setenv("DD_TRACE_AGENT_PROTOCOL_VERSION", "0.4")
	t.Setenv("DD_INSTRUMENTATION_TELEMETRY_ENABLED", "false")
	t.Setenv("DD_REMOTE_CONFIGURATION_ENABLED", "false")
	t.Setenv("DD_TRACE_SAMPLE_RATE", "0.5")
	t.Setenv("DD_TRACE_RATE_LIMIT", "100000")
	testGo(t, false, true)
}

func testGo(t *testing.T, computes, drop bool) {
	through, direct := startAgent(t), startAgent(t)
	socket, stop := startDaemon(t, through.socket, drop)
	f := startFork(t, socket, direct.socket)
	var said complaints
	if err := tracer.Start(tracer.WithUDS(f.socket), tracer.WithService("shop"), tracer.WithEnv("test"), tracer.WithServiceVersion("1.2"),
		tracer.WithStatsComputation(computes), tracer.WithLogger(&said), tracer.WithLogStartup(false)); err != nil {
		t.Fatal(err)
	}
	app := httptest.NewServer(http.HandlerFunc(shop))
	load(t, app.URL)
	app.Close()
	tracer.Flush()
	tracer.Stop()
	time.Sleep(100 * time.Millisecond) // its last requests end behind Stop
	books, cut := stop()
	if drop != (cut > 0) {
		t.Errorf("%v traces were not forwarded", cut)
	}
	through.stop()
	direct.stop()
	t.Log(f)
	if len(said.lines) > 0 {
		t.Errorf("the tracer complains: %q", said.lines)
	}
	got, want := through.traces.spans.Load(), direct.traces.spans.Load()
	t.Logf("%d spans of traces reached the agent through the daemon, %d without it", got, want)
	if got != want || got == 0 {
		t.Errorf("%d spans reached the agent through the daemon, %d without it", got, want)
	}
	ours, spans := through.received.groups(t)
	theirs, counted := direct.computed.groups(t)
	switch {
	case computes:
		// With the traces that this tracer sends while it stops it does not say that
		// it has counted them: what it would ask has been taken down. An agent counts
		// them once more then, and so do we.
		t.Logf("%v spans came without the mark", counted)
		sent, n := direct.received.groups(t)
		for key, g := range sent {
			theirs[key] = theirs[key].plus(g)
		}
		counted += n
		if n != requests*spansEach {
			t.Errorf("the tracer computed statistics of %v spans", n)
		}
	case counted != requests*spansEach:
		t.Errorf("the agent counted %v spans", counted)
	}
	if left, n := through.computed.groups(t); n != 0 {
		t.Errorf("%v spans were left to the agent: %v", n, left)
	} else if float64(books.Flushed) != spans {
		t.Errorf("the books: %+v", books)
	}
	if spans != counted || !maps.Equal(ours, theirs) {
		t.Errorf("%v spans through the daemon, %v without it\n%v\n%v", spans, counted, ours, theirs)
	}
	t.Logf("%v spans in %d groups; %v traces not forwarded", spans, len(ours), cut)
}
