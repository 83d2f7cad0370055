package program

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
)

// doctorOf runs the doctor command and returns its output and exit code.
func doctorOf(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := program(t, append([]string{"doctor"}, args...)...)
	text, err := cmd.Output()
	if _, isExit := err.(*exec.ExitError); err != nil && !isExit {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// TestDoctor diagnoses a daemon without senders, one whose sender counts its spans itself, too, and one
// whose agent has stopped.
func TestDoctor(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket, addr, traces, otlp := filepath.Join(dir, "s"), freePort(t), freePort(t), freePort(t)
	daemonProcess(t, agent.URL(), socket, "--http-addr", addr, "--apm-addr", traces, "--otlp-addr",
		otlp, "--flush-interval", "1s", "--prometheus")
	at := "--url=http://" + addr
	expect := func(code int, texts ...string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			out, got := doctorOf(t, at)
			isMatch := got == code
			for _, text := range texts {
				isMatch = isMatch && strings.Contains(out, text)
			}
			if isMatch {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("exit code %d, want %d; not all of %q are in the output:\n%s", got, code, texts, out)
			}
		}
	}
	expect(0, "notice  receiver apm: no sender has connected yet", "ok      receiver socket: no native client",
		" accepted the last request", "ok      accounting: 0 spans received", "files are open")
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{Service: "a", Operation: "b", Resource: "c"},
		End: time.Now(),
	}})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+traces+"/v0.4/traces",
		strings.NewReader("\x90"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/msgpack")
	request.Header.Set("Datadog-Client-Computed-Stats", "yes")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	for _, path := range []string{"/v1/metrics", "/v1/logs", "/v1/metrics"} { // of an SDK as it is
		response, err := http.Post("http://"+otlp+path, "application/x-protobuf", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	expect(0, "ok      receiver socket: native clients: 1 connected",
		"notice  receiver otlp: 2 requests with metrics were accepted and discarded", "set OTEL_METRICS_EXPORTER=none",
		"notice  receiver otlp: 1 requests with logs were accepted and discarded", "set OTEL_LOGS_EXPORTER=none",
		"counted twice: 1 requests to the receiver apm were not counted",
		"DD_TRACE_STATS_COMPUTATION_ENABLED=false", "the clock of the destination differs by at most",
		"accounting: 1 spans received = 1 counted",
		"of 1 counted spans, the destination agent accepted 1")
	everyReasonHasAFix(t, at)
	query := ""
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query = r.FormValue("query")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"5"]}]}}`))
	}))
	t.Cleanup(prometheus.Close)
	if out, code := doctorOf(t, at, "--prometheus", prometheus.URL); code != 0 ||
		query != doctor.CallsQuery ||
		!strings.Contains(out, "prometheus: Prometheus has 5 calls of all daemons") {
		t.Errorf("exit code %d, output\n%s", code, out)
	}
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{Service: "a", Operation: "b", Resource: "c"},
		End: time.Now(),
	}})
	expect(1, "wrong   destination agent: ", " does not respond", "fix: check whether it is running")
	out, _ := doctorOf(t, at, "--json")
	var findings doctor.Findings
	if err := json.Unmarshal([]byte(out), &findings); err != nil || findings.Wrong() == 0 {
		t.Errorf("--json: %v, %s", err, out)
	}
	if out, code := doctorOf(t, at, "--prometheus=http://"+addr); code != 1 ||
		!strings.Contains(out, "wrong   prometheus: query Prometheus: ") {
		t.Errorf("without Prometheus: exit code %d, output %s", code, out)
	}
	if out, code := doctorOf(t, "--url=http://"+freePort(t)); code != 3 || out != "" {
		t.Errorf("without a daemon: exit code %d, output %s", code, out)
	}
	if _, code := doctorOf(t, at, "--timeout=0s"); code != 2 {
		t.Errorf("with an invalid flag: exit code %d", code)
	}
}

// sum returns the sum over all reasons.
func sum(counts map[string]uint64) (total uint64) {
	for _, n := range counts {
		total += n
	}
	return total
}

// everyReasonHasAFix increments each loss counter of a daemon in turn, and checks that the doctor
// suggests a fix for each.
func everyReasonHasAFix(t *testing.T, at string) {
	t.Helper()
	text, err := program(t, "status", at, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	// not losses
	right := []string{
		"ignored", "left_to_agent", "counted", "duplicate", "computed_by_client", "incomplete",
		"other", "no_space",
	}
	read := func() (s *status.Status) {
		if err := json.Unmarshal(bytes.Clone(text), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	check := func(what string, counts func(*status.Status) map[string]uint64) {
		for reason := range counts(read()) {
			s := read()
			before := doctor.Diagnose(s, s.Version).Wrong()
			counts(s)[reason]++
			s.Accounting.Received += sum(s.Accounting.Dropped) - sum(read().Accounting.Dropped)
			if more := sum(s.Destinations[0].Accounting.UnsentBy) - sum(read().Destinations[0].Accounting.UnsentBy); more > 0 {
				s.Accounting.Received, s.Accounting.Aggregated = s.Accounting.Received+more, s.Accounting.Aggregated+more
				for i := range s.Destinations[1:] {
					s.Destinations[i+1].Accounting.Pending += more
				}
			}
			isRight := false
			for _, name := range right {
				isRight = isRight || name == reason
			}
			if found := doctor.Diagnose(s, s.Version).Wrong() > before; found == isRight &&
				counts(read())[reason] == 0 {
				t.Errorf("%s %s: reported as a problem: %t", what, reason, found)
			}
		}
	}
	check("dropped", func(s *status.Status) map[string]uint64 { return s.Accounting.Dropped })
	check("unsent", func(s *status.Status) map[string]uint64 { return s.Destinations[0].Accounting.UnsentBy })
	check("closed", func(s *status.Status) map[string]uint64 { return s.Connections.Faults })
	check("requests", func(s *status.Status) map[string]uint64 { return s.Receivers["otlp"].Requests })
	right = right[:1]
	check("lost", func(s *status.Status) map[string]uint64 { return s.ClientLost })
}
