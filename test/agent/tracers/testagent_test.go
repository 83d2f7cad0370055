//go:build languages

package tracers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testAgent is Datadog's published ddapm-test-agent, which tracer authors use to test their tracers.
type testAgent struct {
	url, socket string
}

// startTestAgent runs the test agent on loopback, with the request checks that apply to every tracer.
func startTestAgent(t *testing.T) *testAgent {
	t.Helper()
	dir, port := t.TempDir(), freePort(t)
	a := &testAgent{url: "http://127.0.0.1:" + port, socket: filepath.Join(dir, "test-agent.sock")}
	launch(t, exec.Command(tracers+"/python/bin/ddapm-test-agent", "--port", port, "--otlp-http-port",
		freePort(t), "--otlp-grpc-port", freePort(t), "--trace-uds-socket", a.socket, "--snapshot-dir", dir,
		"--pool-trace-check-failures", "true", "--log-level", "WARNING"),
		"ENABLED_CHECKS=trace_count_header,meta_tracer_version_header,trace_content_length")
	await(t, a.url+"/info")
	return a
}

// get queries the test agent, which responds with an error if it could not decode a request.
func (a *testAgent) get(t *testing.T, path string, into any) {
	t.Helper()
	answer, err := http.Get(a.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %s, %v", path, answer.Status, text, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
}

// traces returns all spans by trace ID and span ID.
func (a *testAgent) traces(t *testing.T) map[string]map[string]any {
	t.Helper()
	var traces [][]map[string]any
	a.get(t, "/test/session/traces", &traces)
	spans := map[string]map[string]any{}
	for _, span := range slices.Concat(traces...) {
		id := fmt.Sprint(span["trace_id"], " ", span["span_id"])
		if spans[id] != nil {
			t.Errorf("span %s arrived twice", id)
		}
		spans[id] = span
	}
	return spans
}

// checks returns how many requests passed and failed each check.
func (a *testAgent) checks(t *testing.T) (summary map[string]map[string]int) {
	t.Helper()
	a.get(t, "/test/trace_check/summary?return_all=true", &summary)
	return summary
}

// counted is the part of a group that does not depend on time.
type counted struct{ hits, errors, topLevel int }

// statistics returns the groups, added up over buckets.
func (a *testAgent) statistics(t *testing.T) map[string]counted {
	t.Helper()
	var payloads []struct {
		Stats []struct {
			Stats []struct {
				Service, Name, Resource, Type string
				HTTPStatusCode                int
				Synthetics                    bool
				Hits, Errors, TopLevelHits    int
			}
		}
	}
	a.get(t, "/test/session/stats", &payloads)
	groups := map[string]counted{}
	for _, p := range payloads {
		for _, bucket := range p.Stats {
			for _, g := range bucket.Stats {
				key := fmt.Sprint(g.Service, " ", g.Name, " ", g.Resource, " ", g.Type, " ", g.HTTPStatusCode,
					" ", g.Synthetics)
				c := groups[key]
				groups[key] = counted{c.hits + g.Hits, c.errors + g.Errors, c.topLevel + g.TopLevelHits}
			}
		}
	}
	return groups
}

// TestDatadogTestAgent runs the daemon binary between ddtrace and Datadog's test agent. The test agent
// must decode every statistics payload, count exactly the application's spans, and have the same traces
// as a test agent without a daemon.
func TestDatadogTestAgent(t *testing.T) {
	daemon := filepath.Join(t.TempDir(), "spanstatsd")
	build := exec.Command("go", "build", "-o", daemon, "./cmd/spanstatsd")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the daemon: %v, %s", err, out)
	}
	for _, s := range []setting{{protocol: "0.4"}, {protocol: "0.5"}, {protocol: "0.4", computes: true}} {
		t.Run(s.String(), func(t *testing.T) { againstTestAgent(t, daemon, s) })
	}
}

func againstTestAgent(t *testing.T, daemon string, s setting) {
	through, direct := startTestAgent(t), startTestAgent(t)
	dir, http := t.TempDir(), "127.0.0.1:"+freePort(t)
	apm := filepath.Join(dir, "apm.sock")
	stop := launch(t, exec.Command(daemon, "run", "--socket", filepath.Join(dir, "spans.sock"),
		"--apm-socket", apm, "--agent-url", through.url, "--http-addr", http, "--flush-interval", "1s"))
	await(t, "http://"+http+"/readyz")
	f := startFork(t, apm, direct.socket, false)
	shop := pythonShop()
	if said, err := shop.start(t, s, f.socket).CombinedOutput(); err != nil || complains(string(said)) {
		t.Errorf("the application ended with %v: %s", err, said)
	}
	f.wait()
	stop()

	want := map[string]counted{}
	for i := range 5 { // resources with 40 requests each
		status, errors := 200, 0
		if i == 3 {
			status, errors = 500, 40
		}
		want[fmt.Sprintf("shop http.request GET /order/%d web %d false", i, status)] = counted{40, 0, 40}
		want[fmt.Sprintf("shop-db postgres.query orders of /order/%d db 0 false", i)] = counted{40, errors, 40}
	}
	if got := through.statistics(t); !maps.Equal(got, want) {
		t.Errorf("the test agent has the groups\n%v\nwant\n%v", lines(got), lines(want))
	}
	got, without := through.traces(t), direct.traces(t)
	if int64(len(got)) != shop.spans || !reflect.DeepEqual(got, without) {
		t.Errorf("%d spans arrived through the daemon, %d without it, want %d, all the same", len(got),
			len(without), shop.spans)
	}
	if got, without := through.checks(t), direct.checks(t); len(got) == 0 || !reflect.DeepEqual(got, without) {
		t.Errorf("checks of requests through the daemon %v, without it %v", got, without)
	}
}

func lines[V any](groups map[string]V) string {
	var all []string
	for key, value := range groups {
		all = append(all, fmt.Sprintf("%s: %+v", key, value))
	}
	slices.SortFunc(all, cmp.Compare)
	return strings.Join(all, "\n")
}

// launch starts a program. The returned function ends it with SIGTERM and fails the test if the program
// does not exit by itself. Without that call, the program is ended with the test.
func launch(t *testing.T, command *exec.Cmd, env ...string) (stop func()) {
	t.Helper()
	command.Env = append(os.Environ(), env...)
	var said strings.Builder
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	isOver := false
	stop = func() {
		isOver = true
		_ = command.Process.Signal(syscall.SIGTERM)
		if err := command.Wait(); err != nil {
			t.Errorf("%s ended with %v: %s", command.Path, err, &said)
		}
	}
	t.Cleanup(func() {
		if !isOver {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		if t.Failed() {
			t.Logf("%s wrote %s", command.Path, &said)
		}
	})
	return stop
}

// await waits until a URL responds with 200.
func await(t *testing.T, url string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(url)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
			err = fmt.Errorf("it answers %s", answer.Status)
		}
		if time.Now().After(deadline) {
			t.Fatalf("GET %s: %v", url, err)
		}
	}
}

// freePort returns an unused loopback port.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}
