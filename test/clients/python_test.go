//go:build languages

package clients

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
			requests := &shopClient{t: t, url: "http://" + address, requests: map[string]int64{}}
			requests.requestDuringOutages(p, app)
			requests.check(p.series(), server.route, app.unconfirmed())
			if other := sumOf(p.series(), "span.kind=SPAN_KIND_INTERNAL0"); other > requests.total()*int64(server.otherSpans) {
				t.Errorf("%d internal spans of %d requests", other, requests.total())
			}
			exports.check(t, requests.total())
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

// startPython starts a program of the virtual environment, whose spans are sampled at 1 %.
func startPython(t *testing.T, p *pod, exports *relay, arguments ...string) *application {
	t.Helper()
	dir, err := filepath.Abs(os.Getenv("PYTHON_DIR"))
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "venv/bin")
	arguments[0] = filepath.Join(bin, arguments[0])
	process := pythonCommand(t, "opentelemetry-instrument", arguments...)
	process.Dir = "python"
	return startApplication(t, p, exports, process, "PATH="+bin+":"+os.Getenv("PATH"), "PYTHONDONTWRITEBYTECODE=1",
		"DJANGO_SETTINGS_MODULE=shop_django", "OTEL_PYTHON_CONFIGURATOR=spanstatsd")
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
