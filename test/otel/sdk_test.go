package otel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
)

// program is the daemon binary, built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "otel")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "spanstatsd")
	build := exec.Command("go", "build", "-o", program, "./cmd/spanstatsd")
	build.Dir, build.Stderr = "../..", os.Stderr
	if err := build.Run(); err != nil {
		panic("build the daemon: " + err.Error())
	}
	os.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "120000") // milliseconds, for slow machines
	os.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "120000")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// daemon is a running daemon with a fake agent.
type daemon struct {
	otlp, http string // listen addresses
	agent      *standin.Agent
	groups     []payload.Group // groups at the agent; read them after stop
	stop       func()          // stops the daemon gracefully
}

// start starts the daemon on free ports.
func start(t *testing.T, flags ...string) *daemon {
	t.Helper()
	d := &daemon{}
	var mu sync.Mutex
	agent, err := standin.Start(standin.Config{
		Network: "tcp", Address: "127.0.0.1:0",
		OnPayload: func(r standin.Received) {
			mu.Lock()
			defer mu.Unlock()
			for _, bucket := range r.Payload.Stats {
				d.groups = append(d.groups, bucket.Stats...)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	cmd := exec.Command(program, append([]string{
		"run", "--socket", filepath.Join(t.TempDir(), "s"), "--agent-url", agent.URL(), "--http-addr",
		"127.0.0.1:0",
		"--otlp-addr", "127.0.0.1:0", "--log-format", "json", "--shutdown-grace", "30s",
	}, flags...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.agent = agent
	d.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	t.Cleanup(d.stop)
	lines := bufio.NewScanner(log)
	for d.http == "" && lines.Scan() {
		var line struct{ Msg, Addr, HTTP string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		switch {
		case line.Msg == "receiving OTLP":
			d.otlp = line.Addr
		case line.HTTP != "":
			d.http = line.HTTP
		}
	}
	if d.otlp == "" || d.http == "" {
		t.Fatal("the daemon says nowhere that it listens")
	}
	go func() {
		for lines.Scan() { // read everything, so that the daemon never blocks on its log
		}
	}()
	return d
}

// status returns the daemon's status.
func (d *daemon) status(t *testing.T) (s status.Status) {
	t.Helper()
	resp, err := http.Get("http://" + d.http + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// newExporter creates an SDK exporter that is configured by environment variables alone.
func newExporter(t *testing.T, d *daemon, isGRPC, isPacked bool) sdk.SpanExporter {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+d.otlp)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", map[bool]string{true: "gzip", false: ""}[isPacked])
	var exporter sdk.SpanExporter
	var err error
	if isGRPC {
		exporter, err = otlptracegrpc.New(t.Context())
	} else {
		exporter, err = otlptracehttp.New(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return exporter
}

// work ends traces of two spans each, and returns the number of ended spans by conventional name. The names of
// the root spans contain the number of an item.
func work(ctx context.Context, tracer trace.Tracer, traces int) map[string]int {
	ended := map[string]int{}
	for i := range traces {
		name := fmt.Sprint("GET /items/", i%7)
		ctx, root := tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("http.request.method", "GET"), attribute.String("http.route", "/items/{id}")))
		_, below := tracer.Start(ctx, "SELECT items", trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String("db.system.name", "postgresql")))
		if i%5 == 0 {
			below.SetStatus(codes.Error, "no such item")
		}
		below.End()
		root.End()
		ended["GET /items/{id}"]++
		ended["SELECT items"]++
	}
	return ended
}

// TestSDK_EverySpanIsCounted checks each exporter: every span reaches the agent under its name.
func TestSDK_EverySpanIsCounted(t *testing.T) {
	for _, c := range []struct{ isGRPC, isPacked bool }{
		{false, false},
		{false, true},
		{true, false},
		{true, true},
	} {
		t.Run(fmt.Sprintf("gRPC %v gzip %v", c.isGRPC, c.isPacked), func(t *testing.T) {
			d := start(t)
			provider := sdk.NewTracerProvider(sdk.WithBatcher(newExporter(t, d, c.isGRPC, c.isPacked),
				sdk.WithBlocking()))
			const traces = 3000
			ended := work(t.Context(), provider.Tracer("test"), traces)
			if err := provider.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			s := d.status(t)
			if s.Accounting.Received != 2*traces || s.Accounting.DroppedTotal() != 0 {
				t.Errorf("accounting %+v, requests %v", s.Accounting, s.Receivers["otlp"].Requests)
			}
			d.stop()
			got := map[string]int{}
			for _, row := range d.agent.Totals().Rows {
				got[row.Resource] += int(row.Hits)
			}
			for name, spans := range ended {
				if got[name] != spans {
					t.Errorf("%q: the agent has %d spans, the SDK ended %d; all: %v", name, got[name], spans,
						got)
				}
			}
		})
	}
}

// receiver is a gRPC receiver based on the OpenTelemetry library. It discards metrics.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	url   string // value for --otlp-forward
	mu    sync.Mutex
	spans map[string]int // by trace ID
	state map[string]int
	taken []*traces.ResourceSpans
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{
		url: "grpc://" + listener.Addr().String(), spans: map[string]int{},
		state: map[string]int{},
	}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	metrics.RegisterMetricsServiceServer(server, taker{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return r
}

func (r *receiver) Export(_ context.Context,
	request *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = append(r.taken, request.ResourceSpans...)
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans[string(s.TraceId)]++
				r.state[s.TraceState]++
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// taker accepts metrics.
type taker struct {
	metrics.UnimplementedMetricsServiceServer
}

func (taker) Export(context.Context, *metrics.ExportMetricsServiceRequest,
) (*metrics.ExportMetricsServiceResponse, error) {
	return &metrics.ExportMetricsServiceResponse{}, nil
}

// TestSampling_ForwardsShare checks that a share of whole traces is forwarded with the threshold
// of that share, and that all spans are counted. Half of 2000 random IDs is within six standard
// deviations of half.
func TestSampling_ForwardsShare(t *testing.T) {
	behind := startReceiver(t)
	d := start(t, "--otlp-forward", behind.url, "--otlp-keep", "0.5")
	const traces = 2000
	for _, isGRPC := range []bool{false, true} {
		provider := sdk.NewTracerProvider(sdk.WithBatcher(newExporter(t, d, isGRPC, true),
			sdk.WithBlocking()))
		work(t.Context(), provider.Tracer("test"), traces/2)
		if err := provider.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := d.status(t); s.Accounting.Received != 2*traces {
		t.Errorf("accounting %+v", s.Accounting)
	}
	d.stop()
	behind.mu.Lock()
	defer behind.mu.Unlock()
	if kept := len(behind.spans); kept < traces/2-6*23 || kept > traces/2+6*23 {
		t.Errorf("%d of %d traces went on", kept, traces)
	}
	for id, spans := range behind.spans {
		if spans != 2 {
			t.Errorf("of trace %x %d spans went on", id, spans)
		}
	}
	if len(behind.state) != 1 || behind.state["ot=th:8"] == 0 {
		t.Errorf("tracestates %v", behind.state)
	}
}

// TestSDK_Retries checks that the SDK's retries while the destination is unavailable lose no span
// and count none twice.
func TestSDK_Retries(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	tries := 0
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if tries++; tries <= 2 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}))
	}()
	defer listener.Close()
	d := start(t, "--otlp-forward", "http://"+listener.Addr().String())
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+d.otlp)
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: time.Millisecond, MaxInterval: time.Millisecond,
		MaxElapsedTime: time.Minute,
	}))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter, sdk.WithBlocking()))
	work(t.Context(), provider.Tracer("test"), 100)
	if err := provider.Shutdown(t.Context()); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s := d.status(t)
	if s.Accounting.Received != 200 || s.Accounting.DroppedTotal() != 0 || s.Receivers["otlp"].Requests["duplicate"] != 2 ||
		s.Receivers["otlp"].Forwarded["retryable"] != 2 {
		t.Errorf("accounting %+v, %+v", s.Accounting, s.Receivers["otlp"])
	}
}
