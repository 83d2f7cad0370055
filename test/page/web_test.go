//go:build browser && languages

package page

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// otlpDaemon is a daemon with an OTLP receiver.
type otlpDaemon struct{ otlp, http string }

func startOTLP(t *testing.T, flags ...string) (d otlpDaemon) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "spanstatsd")
	build := exec.Command("go", "build", "-o", binary, "./cmd/spanstatsd")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v\n%s", err, out)
	}
	command := exec.Command(binary, append([]string{
		"run", "--socket", filepath.Join(dir, "s"), "--agent-url", "off", "--prometheus", "--http-addr",
		"127.0.0.1:0", "--otlp-addr", "127.0.0.1:0", "--log-format", "json",
	}, flags...)...)
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("the daemon ended with %v", err)
		}
	})
	lines := bufio.NewScanner(log)
	for (d.otlp == "" || d.http == "") && lines.Scan() {
		var line struct{ Msg, Addr, HTTP string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		if line.Msg == "receiving OTLP" {
			d.otlp = "http://" + line.Addr
		} else if line.HTTP != "" {
			d.http = "http://" + line.HTTP
		}
	}
	if d.otlp == "" || d.http == "" {
		t.Fatal("the daemon does not log its address")
	}
	go func() {
		for lines.Scan() { // so that the daemon never blocks on its log
		}
	}()
	return d
}

func (d otlpDaemon) status(t *testing.T) (s status.Status) {
	t.Helper()
	answer, err := http.Get(d.http + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// servePage serves a page with the SDK on its own origin.
func servePage(t *testing.T) (origin string) {
	t.Helper()
	script := filepath.Join(os.Getenv("WEB_DIR"), "page.js")
	if _, err := os.Stat(script); err != nil || os.Getenv("WEB_DIR") == "" {
		t.Fatalf("find the page's script: %v; run `make test-web`, which bundles it", err)
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page.js" {
			http.ServeFile(w, r, script)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!doctype html><link rel="icon" href="data:,"><script src="/page.js"></script>`))
	}))
	t.Cleanup(page.Close)
	return page.URL
}

// resolved evaluates an expression in the page and waits for its promise.
func (b *browser) resolved(expression string) (result string) {
	b.t.Helper()
	b.run(chromedp.Evaluate(expression, &result, func(p *runtime.EvaluateParams) *runtime.EvaluateParams {
		return p.WithAwaitPromise(true)
	}))
	return result
}

// TestSDK_InBrowser checks that every ended span of a page's SDK is counted once, even if the upstream
// is overloaded at first; that a script can read a refusal and its retry time; and that the browser
// blocks a page whose origin is not allowed.
func TestSDK_InBrowser(t *testing.T) {
	var received atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			t.Errorf("%s was forwarded", r.Method)
		}
		if received.Add(1) <= 2 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer upstream.Close()
	shop, other := servePage(t), servePage(t)
	d := startOTLP(t, "--otlp-cors-origin", "https://*.example.com,"+shop, "--otlp-forward", upstream.URL,
		"--otlp-max-body", "256KiB")
	b := openBrowser(t)

	b.run(chromedp.Navigate(shop))
	const spans = 300
	for _, protocol := range []string{"protobuf", "json"} {
		result := b.resolved(`exportSpans("` + d.otlp + `", "` + protocol + `", ` + strconv.Itoa(spans) + `)`)
		if result != "exported" {
			t.Errorf("%s: %s", protocol, result)
		}
	}
	if s := d.status(t); s.Accounting.Received != 2*spans || s.Accounting.DroppedTotal() != 0 ||
		s.Receivers["otlp"].Requests["duplicate"] != 2 || s.Receivers["otlp"].Forwarded["retryable"] != 2 {
		t.Errorf("of %d spans: accounting %+v, OTLP %+v", 2*spans, s.Accounting, s.Receivers["otlp"])
	}
	b.takeComplaints() // of the two overload responses
	for _, c := range []struct{ path, media, body, want string }{
		{"/v1/traces", "application/json", `"{"`, "200 "}, // it is forwarded, for its destination to judge
		{"/v1/traces", "application/x-protobuf", `"x".repeat(300 << 10)`, "413 "},
		{"/v1/traces", "text/plain", `"x"`, "415 "},
		{"/v1/nothing", "text/plain", `"x"`, "404 "},
	} {
		if result := b.resolved(`answerTo("` + d.otlp + c.path + `", "` + c.media + `", ` + c.body +
			`)`); result != c.want {
			t.Errorf("%s %s: a script reads %q, want %q", c.path, c.media, result, c.want)
		}
	}
	received.Store(0)
	if result := b.resolved(`answerTo("` + d.otlp + `/v1/logs", "application/json", "{}")`); result != "503 1" {
		t.Errorf("a script reads %q from an overloaded upstream", result)
	}
	b.takeComplaints()

	before := d.status(t)
	b.run(chromedp.Navigate(other))
	result := b.resolved(`answerTo("` + d.otlp + `/v1/traces", "application/json", "{}").catch(String)`)
	complaints := strings.Join(b.takeComplaints(), "\n")
	if !strings.Contains(result, "Failed to fetch") || !strings.Contains(complaints, "CORS policy") {
		t.Errorf("a page of another origin reads %q, and its browser reports %q", result, complaints)
	}
	after := d.status(t)
	if after.Receivers["otlp"].Requests["refused"] != before.Receivers["otlp"].Requests["refused"]+1 ||
		after.Accounting.Received != before.Accounting.Received ||
		after.Receivers["otlp"].Requests["counted"] != before.Receivers["otlp"].Requests["counted"] {
		t.Errorf("after it: %+v, before %+v", after.Receivers["otlp"], before.Receivers["otlp"])
	}
}
