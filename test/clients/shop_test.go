//go:build languages

package clients

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
)

// application is a running application that uses published instrumentation libraries.
type application struct {
	t       *testing.T
	process *exec.Cmd
	output  lockedBuffer
	ended   chan error
}

// startApplication starts an application, whose spans are sampled at 1 %. It exports every 200 ms instead of every 5 s,
// since a worker of uvicorn ends without the shutdown of its SDK, which would export the rest.
func startApplication(t *testing.T, p *pod, exports *relay, process *exec.Cmd, environment ...string) *application {
	t.Helper()
	app := &application{t: t, process: process, ended: make(chan error, 1)}
	process.Env = append(os.Environ(), "SPANSTATSD_SOCKET="+p.socket, "OTEL_SERVICE_NAME=shop", "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=0.01", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_METRICS_EXPORTER=none",
		"OTEL_LOGS_EXPORTER=none", "OTEL_BSP_SCHEDULE_DELAY=200", "OTEL_EXPORTER_OTLP_ENDPOINT="+exports.server.URL)
	process.Env = append(process.Env, environment...)
	process.Stdout, process.Stderr = &app.output, &app.output
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-process.Process.Pid, syscall.SIGKILL) })
	go func() { app.ended <- process.Wait() }()
	return app
}

// stop sends a signal to the application, and waits until it has ended.
func (a *application) stop(signal syscall.Signal) {
	a.t.Helper()
	if err := a.process.Process.Signal(signal); err != nil {
		a.t.Fatal(err)
	}
	a.wait(time.Minute)
}

// wait waits until the application has ended by itself.
func (a *application) wait(timeout time.Duration) {
	a.t.Helper()
	select {
	case <-a.ended:
	case <-time.After(timeout):
		a.t.Fatalf("the application does not end:\n%s", a.output.String())
	}
}

var endedDaemon = regexp.MustCompile(`(\d+) ambiguous, (\d+) lost at most`)

// unconfirmed returns the number of spans that killed daemons may have exported or not, according to the clients' log.
func (a *application) unconfirmed() (spans int64) {
	for _, found := range endedDaemon.FindAllStringSubmatch(a.output.String(), -1) {
		for _, number := range found[1:] {
			n, _ := strconv.ParseInt(number, 10, 64)
			spans += n
		}
	}
	return spans
}

// lockedBuffer is a buffer for the output of a process.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// shopClient sends requests to a server, and counts them by status.
type shopClient struct {
	t        *testing.T
	url      string
	mu       sync.Mutex
	requests map[string]int64 // by path and status
}

func (s *shopClient) awaitStart(app *application) {
	s.t.Helper()
	for deadline := time.Now().Add(4 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if response, err := http.Get(s.url + "/orders"); err == nil {
			response.Body.Close()
			s.requests["/orders"]++
			return
		}
	}
	s.t.Fatalf("the server does not start:\n%s", app.output.String())
}

// requestDuringOutages sends requests while the daemon is stopped, killed and replaced, and ends the application.
func (s *shopClient) requestDuringOutages(p *pod, app *application) {
	s.t.Helper()
	s.awaitStart(app)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		s.request(400)
		p.end(signal)
		s.request(100)
		p.start()
		s.request(400)
	}
	app.stop(syscall.SIGTERM)
	p.end(syscall.SIGTERM)
}

// request sends n requests on new connections, so that all workers get some.
func (s *shopClient) request(n int) {
	s.t.Helper()
	const senders = 4
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var sending sync.WaitGroup
	for sender := range senders {
		sending.Go(func() {
			for i := sender; i < n; i += senders {
				path := fmt.Sprintf("/carts/%d", i%20)
				response, err := client.Get(s.url + path)
				if err != nil {
					s.t.Error(err)
					continue
				}
				_, _ = io.Copy(io.Discard, response.Body)
				response.Body.Close()
				s.mu.Lock()
				s.requests[fmt.Sprint("/carts ", response.StatusCode)]++
				s.mu.Unlock()
			}
		})
	}
	sending.Wait()
}

func (s *shopClient) total() (n int64) {
	for _, requests := range s.requests {
		n += requests
	}
	return n
}

// check compares the exported series of the server with the requests. Up to unconfirmed spans may be missing.
func (s *shopClient) check(series map[string]int64, route string, unconfirmed int64) {
	s.t.Helper()
	missing := int64(0)
	for name, want := range s.requests {
		labels := []string{"span.kind=SPAN_KIND_SERVER0", "orders0"} // Django's routes do not start with a slash
		if path, status, isCart := strings.Cut(name, " "); isCart && path == "/carts" {
			labels = []string{"span.kind=SPAN_KIND_SERVER0", "span.name=GET " + route + "0", "http.response.status_code=" + status}
		}
		got := sumOf(series, labels...)
		if got > want {
			s.t.Errorf("%s: %d requests are counted as %d", name, want, got)
		}
		missing += want - got
	}
	if missing > unconfirmed {
		s.t.Errorf("%d of %d requests are not counted, and %d are unconfirmed:\n%s", missing, s.total(), unconfirmed, lines(series))
	}
	s.t.Logf("%d requests, %d are counted, %d are unconfirmed", s.total(), s.total()-missing, unconfirmed)
}

// sumOf returns the calls of all series with the labels.
func sumOf(series map[string]int64, labels ...string) (calls int64) {
	for name, n := range series {
		hasAll := true
		for _, label := range labels {
			hasAll = hasAll && strings.Contains(name, label)
		}
		if hasAll {
			calls += n
		}
	}
	return calls
}

// relay forwards OTLP requests to a daemon, and counts the exported traces.
type relay struct {
	server   *httptest.Server
	target   atomic.Pointer[string]
	mu       sync.Mutex
	traces   map[string]bool
	unmarked int // resources that are not marked as counted
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{traces: map[string]bool{}}
	r.server = httptest.NewServer(http.HandlerFunc(r.forward))
	t.Cleanup(r.server.Close)
	return r
}

func (r *relay) set(address string) { r.target.Store(&address) }

func (r *relay) forward(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	traces := &tracepb.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(body, traces)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.count(traces, request.Header.Get("Datadog-Client-Computed-Stats") == "yes")
	forwarded, err := http.NewRequestWithContext(request.Context(), request.Method, "http://"+*r.target.Load()+request.URL.Path, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	forwarded.Header = request.Header
	response, err := http.DefaultClient.Do(forwarded)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer response.Body.Close()
	w.WriteHeader(response.StatusCode)
	_, _ = io.Copy(w, response.Body)
}

func (r *relay) count(traces *tracepb.ExportTraceServiceRequest, isMarked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range traces.ResourceSpans {
		if !isMarked || !strings.Contains(textOf(resource.Resource.Attributes), "_dd.stats_computed=true") {
			r.unmarked++
		}
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				r.traces[string(span.TraceId)] = true
			}
		}
	}
}

// check compares the exported traces with the number of requests.
func (r *relay) check(t *testing.T, requests int64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.traces) == 0 || int64(len(r.traces))*20 > requests || r.unmarked > 0 {
		t.Errorf("%d traces of %d requests are exported, and %d resources are not marked as counted", len(r.traces), requests, r.unmarked)
	}
}
