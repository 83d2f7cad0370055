//go:build languages

package clients

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
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

	"github.com/spanstatsd/spanstatsd/lab/built"
)

// These tests run the wheel of clients/python, as installed by python/install.sh (make test-python-client). PYTHON_DIR is
// the folder.

// TestPython_CheckClient checks with check-client that the client follows the protocol, also when the daemon dies.
func TestPython_CheckClient(t *testing.T) {
	lab, err := built.Plain(t.TempDir(), built.Lab)
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--connections", "1"}, {"--connections", "2", "--die"}} {
		dir, err := os.MkdirTemp("", "check")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		socket := filepath.Join(dir, "s")
		check := exec.Command(lab, append([]string{"check-client", "--socket", socket}, flags...)...)
		var report bytes.Buffer
		check.Stdout, check.Stderr = &report, &report
		if err := check.Start(); err != nil {
			t.Fatal(err)
		}
		client := pythonCommand(t, "python", "python/send.py", socket)
		out, clientErr := client.CombinedOutput()
		if clientErr != nil {
			_ = check.Process.Kill()
		}
		if err := check.Wait(); err != nil || clientErr != nil {
			t.Errorf("%v: %v, %v\n%s\n%s", flags, err, clientErr, out, report.Bytes())
		}
	}
}

// TestPython_EqualsOTLP checks that a daemon which gets the spans of the shared vectors from the span processor exports
// the same series as one that gets them over OTLP.
func TestPython_EqualsOTLP(t *testing.T) {
	native, overOTLP := newPod(t), newPod(t)
	out, err := pythonCommand(t, "python", "python/twice.py", native.socket, overOTLP.otlp,
		"../../internal/rules/otel/testdata/labels.json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	native.end(syscall.SIGTERM)
	overOTLP.end(syscall.SIGTERM)
	got, want := native.series(), overOTLP.series()
	if !maps.Equal(got, want) {
		t.Errorf("series of the span processor:\n%s\nof OTLP:\n%s", lines(got), lines(want))
	}
	if spans := strings.TrimSpace(string(out)); spans != strconv.FormatInt(sumOf(got), 10) {
		t.Errorf("%d of %s spans are counted", sumOf(got), spans)
	}
}

// TestPython_Servers checks that every request to a server with four workers is counted once although the SDK exports
// one trace in a hundred, to the same daemon, while that daemon is stopped and killed. The application has no code for
// it.
func TestPython_Servers(t *testing.T) {
	for name, server := range map[string]struct {
		arguments  []string
		route      string
		otherSpans int // spans of other kinds per request
	}{
		"FastAPI": {[]string{"-k", "uvicorn.workers.UvicornWorker", "shop_fastapi:app"}, "/carts/{cart}", 2},
		"Flask":   {[]string{"--preload", "--threads", "4", "shop_flask:app"}, "/carts/<int:cart>", 0},
		"Django":  {[]string{"--threads", "2", "django.core.wsgi:get_wsgi_application()"}, "carts/<int:cart>", 0},
		"gevent":  {[]string{"-k", "gevent", "shop_flask:app"}, "/carts/<int:cart>", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, exports := newPod(t), newRelay(t)
			exports.set(p.otlp)
			address := freeAddress(t)
			app := startPython(t, p, exports, append([]string{"gunicorn", "-w", "4", "-b", address}, server.arguments...)...)
			shop := &pythonShop{t: t, url: "http://" + address, requests: map[string]int64{}}
			shop.awaitStart(app)
			for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
				shop.request(400)
				p.end(signal)
				shop.request(100)
				p.start()
				shop.request(400)
			}
			app.stop(syscall.SIGTERM)
			p.end(syscall.SIGTERM)
			shop.check(p.series(), server.route, app.unconfirmed())
			if other := sumOf(p.series(), "span.kind=SPAN_KIND_INTERNAL0"); other > shop.total()*int64(server.otherSpans) {
				t.Errorf("%d internal spans of %d requests", other, shop.total())
			}
			exports.check(t, shop.total())
		})
	}
}

// TestPython_Celery checks that every job that a prefork pool executes is counted, although its processes end without
// the functions of atexit.
func TestPython_Celery(t *testing.T) {
	const jobs = 300
	p, exports := newPod(t), newRelay(t)
	exports.set(p.otlp)
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "control"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOBS_FOLDER", folder)
	worker := startPython(t, p, exports, "celery", "-A", "jobs", "worker", "-c", "4", "--max-tasks-per-child", "20")
	sender := startPython(t, p, exports, "python", "jobs.py", strconv.Itoa(jobs))
	sender.wait(2 * time.Minute)
	worker.stop(syscall.SIGTERM)
	p.end(syscall.SIGTERM)
	for kind, want := range map[string]int64{"CONSUMER": jobs, "PRODUCER": jobs} {
		if got := sumOf(p.series(), "span.kind=SPAN_KIND_"+kind+"0"); got != want {
			t.Errorf("%d spans of kind %s, not %d:\n%s\n%s", got, kind, want, lines(p.series()), worker.output.String())
		}
	}
}

// pythonCommand returns a command for a program of the virtual environment.
func pythonCommand(t *testing.T, program string, arguments ...string) *exec.Cmd {
	t.Helper()
	dir := os.Getenv("PYTHON_DIR")
	if dir == "" {
		t.Fatal("PYTHON_DIR is not set; run make test-python-client")
	}
	return exec.Command(filepath.Join(dir, "venv/bin", program), arguments...)
}

// pythonApp is a running application under opentelemetry-instrument.
type pythonApp struct {
	t       *testing.T
	process *exec.Cmd
	output  lockedBuffer
	ended   chan error
}

// startPython starts a program of the virtual environment, whose spans are sampled at 1 %.
func startPython(t *testing.T, p *pod, exports *relay, arguments ...string) *pythonApp {
	t.Helper()
	dir, err := filepath.Abs(os.Getenv("PYTHON_DIR"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "venv/bin")
	arguments[0] = filepath.Join(bin, arguments[0])
	app := &pythonApp{t: t, process: pythonCommand(t, "opentelemetry-instrument", arguments...), ended: make(chan error, 1)}
	app.process.Dir = "python"
	app.process.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1", "DJANGO_SETTINGS_MODULE=shop_django",
		"SPANSTATSD_SOCKET="+p.socket, "OTEL_SERVICE_NAME=shop", "OTEL_PYTHON_CONFIGURATOR=spanstatsd", "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=0.01", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_METRICS_EXPORTER=none",
		"OTEL_LOGS_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT="+exports.server.URL)
	app.process.Stdout, app.process.Stderr = &app.output, &app.output
	app.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := app.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-app.process.Process.Pid, syscall.SIGKILL) })
	go func() { app.ended <- app.process.Wait() }()
	return app
}

// stop sends a signal to the application, and waits until it has ended.
func (a *pythonApp) stop(signal syscall.Signal) {
	a.t.Helper()
	if err := a.process.Process.Signal(signal); err != nil {
		a.t.Fatal(err)
	}
	a.wait(time.Minute)
}

// wait waits until the application has ended by itself.
func (a *pythonApp) wait(timeout time.Duration) {
	a.t.Helper()
	select {
	case <-a.ended:
	case <-time.After(timeout):
		a.t.Fatalf("the application does not end:\n%s", a.output.String())
	}
}

var endedDaemon = regexp.MustCompile(`(\d+) ambiguous, (\d+) lost at most`)

// unconfirmed returns the number of spans that killed daemons may have exported or not, according to the clients' log.
func (a *pythonApp) unconfirmed() (spans int64) {
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

// pythonShop sends requests to a server, and counts them by status.
type pythonShop struct {
	t        *testing.T
	url      string
	mu       sync.Mutex
	requests map[string]int64 // by path and status
}

func (s *pythonShop) awaitStart(app *pythonApp) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if response, err := http.Get(s.url + "/orders"); err == nil {
			response.Body.Close()
			s.requests["/orders"]++
			return
		}
	}
	s.t.Fatalf("the server does not start:\n%s", app.output.String())
}

// request sends n requests on new connections, so that all workers get some.
func (s *pythonShop) request(n int) {
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

func (s *pythonShop) total() (n int64) {
	for _, requests := range s.requests {
		n += requests
	}
	return n
}

// check compares the exported series of the server with the requests. Up to unconfirmed spans may be missing.
func (s *pythonShop) check(series map[string]int64, route string, unconfirmed int64) {
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

// TestPython_PatchedLater checks that a client sends its spans although gevent has replaced threads after it was created.
func TestPython_PatchedLater(t *testing.T) {
	p := newPod(t)
	if out, err := pythonCommand(t, "python", "python/patched.py", p.socket).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.end(syscall.SIGTERM)
	if counted := sumOf(p.series()); counted != 100 {
		t.Errorf("%d of 100 spans are counted", counted)
	}
}

// TestPython_DocumentedSetUp runs the set-up in docs/python-opentelemetry.md: each of its spans is counted.
func TestPython_DocumentedSetUp(t *testing.T) {
	page, err := os.ReadFile("../../docs/python-opentelemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```python\n")
	shown, _, _ := strings.Cut(after, "```")
	p := newPod(t)
	run := pythonCommand(t, "python", "-c", shown+"\nfor _ in range(100):\n    trace.get_tracer('shop').start_span('job').end()\n")
	run.Env = append(os.Environ(), "SPANSTATSD_SOCKET="+p.socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+p.otlp,
		"OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1")
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.end(syscall.SIGTERM)
	if counted := sumOf(p.series()); counted != 100 {
		t.Errorf("%d of 100 spans are counted", counted)
	}
}
