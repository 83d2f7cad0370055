package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spanstatsd/spanstatsd/lab/bench"
	"github.com/spanstatsd/spanstatsd/lab/standin"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// measured runs bench as a process and returns its report. bench itself fails if its figures do
// not agree.
func measured(t *testing.T, args ...string) (report bench.Report, names map[string]bool) {
	t.Helper()
	cmd := program(t, append([]string{"bench", "--json"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s%s", err, errs.Bytes(), out.Bytes())
	}
	decoder := json.NewDecoder(bytes.NewReader(out.Bytes()))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("the output is not a report: %v\n%s", err, out.Bytes())
	}
	if _, err := decoder.Token(); err != io.EOF {
		t.Errorf("more than one object was written: %s", out.Bytes())
	}
	var object map[string]any
	if err := json.Unmarshal(out.Bytes(), &object); err != nil {
		t.Fatal(err)
	}
	names = map[string]bool{}
	addNames(names, "", object)
	return report, names
}

// addNames collects the keys of a JSON object, with a dot before nested keys. Counts by reason or
// by field are one name.
func addNames(names map[string]bool, prefix string, object map[string]any) {
	for name, value := range object {
		within, is := value.(map[string]any)
		if is && !slices.Contains([]string{"refused", "dropped", "collapsed"}, name) {
			addNames(names, prefix+name+".", within)
		} else {
			names[prefix+name] = true
		}
	}
}

// checkReport checks the properties that the reports of all workloads share.
func checkReport(t *testing.T, r *bench.Report, wanted uint64) {
	t.Helper()
	b := &r.Accounting
	var dropped uint64
	for _, spans := range r.Dropped {
		dropped += spans
	}
	switch {
	case !b.Balanced || b.Received != b.Aggregated+b.Dropped || b.Aggregated != b.Flushed+b.Unsent+b.Pending:
		t.Errorf("the accounting is not balanced: %+v", *b)
	case b.Dropped != dropped || r.SpansAccepted != b.Aggregated || b.Pending != 0:
		t.Errorf("the figures contradict the accounting %+v: %d dropped, %d accepted", *b, dropped,
			r.SpansAccepted)
	case r.AgentHits == nil || *r.AgentHits != r.SpansAccepted || !*r.HitsEqualAccepted:
		t.Errorf("the agent counted %v hits of %d accepted spans", r.AgentHits, r.SpansAccepted)
	case r.SpansAttempted != wanted:
		t.Errorf("%d spans were attempted, want %d", r.SpansAttempted, wanted)
	case r.DaemonCPU <= 0 || r.TracerCPU <= 0 || r.DaemonPeakRSS == 0 || r.Seconds <= 0 || r.Flushes == 0 ||
		r.FlushMean <= 0:
		t.Errorf("a figure is missing: %+v", *r)
	case r.Publish.Samples == 0 || r.Publish.P50 > r.Publish.P99 || r.Publish.P999 > r.Publish.Longest:
		t.Errorf("publish latencies are out of order: %+v", r.Publish)
	case r.PublishToTable.Samples == 0 || r.PublishToTable.P50 <= 0 ||
		r.PublishToTable.P99 > r.PublishToTable.Longest:
		t.Errorf("latencies to the table are out of order: %+v", r.PublishToTable)
	}
}

// TestBench runs every workload against a daemon that bench starts.
func TestBench(t *testing.T) {
	t.Parallel()
	const spans = 64 << 10
	cases := map[string][]string{
		"numbered":        {"--keys=numbered", "--workload=pool"},
		"numbered unique": {"--keys=numbered", "--workload=adversarial", "--batch=7"},
		"client":          {"--tracer=client", "--rate=200000"},
		"client encoded":  {"--tracer=client", "--keys=numbered", "--rate=200000"},
		"many":            {"--producers=2", "--connections=8", "--origins=4", "--rate=200000"},
		"keys":            {"--key-count=5000"},
		"warm-up":         {"--for=10s", "--warm-up=50ms", "--rate=400000", "--cpus=1"},
		"daemon's flags":  {"--", "--drainers=fixed:1", "--max-aggregates=10"},
		"mixed flood":     {"--workload=flood:urls:5%"},
		"mixed, numbered": {"--workload=flood:numbered:50%"},
		"flood, client":   {"--workload=flood:tags:50%", "--tracer=client", "--rate=100000"},
		"longest flood":   {"--workload=flood:many-tags:5%", "--spans=4096"},
	}
	for _, name := range slices.Concat(workload.Names(),
		[]string{workload.UniqueResource, workload.UniquePeer}) {
		cases[name] = []string{"--workload=" + name}
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, _ := measured(t, append([]string{"--spans=65536"}, args...)...)
			wanted := uint64(spans)
			switch name {
			case "numbered unique":
				wanted = (spans + 6) / 7 * 7 // only complete batches are sent
			case "longest flood":
				wanted = 4096 // each with 256 tags
			}
			checkReport(t, &report, wanted)
			if name == "daemon's flags" && report.Collapsed["whole_key"] == 0 {
				t.Error("no key collapsed although the daemon is limited to ten")
			}
			if name == "mixed, numbered" && report.Keys != bench.Numbered {
				t.Errorf("keys of a flood of numbers were sent %s", report.Keys)
			}
		})
	}
}

// TestBench_KeysAreDocumented checks that the documentation names each key of the report.
func TestBench_KeysAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/benchmarks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### The names of `--json`")
	section, _, ended := strings.Cut(section, "\n#")
	if !found || !ended {
		t.Fatal("docs/benchmarks.md has no section about the names of --json")
	}
	documented := map[string]bool{}
	for _, line := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([a-z0-9_.]+)`").FindAllStringSubmatch(line[1], -1) {
			documented[name[1]] = true
		}
	}
	_, names := measured(t, "--spans=1000", "--batch=10")
	_, more := measured(t, "--workload=traces", "--spans=1000")
	for name := range names {
		if !more[name] && name != "traces" { // null in one report, an object in the other
			t.Errorf("a report of traces has no %s", name)
		}
	}
	maps.Copy(names, more)
	for name := range names {
		if !documented[name] {
			t.Errorf("docs/benchmarks.md does not describe %s", name)
		}
	}
	for name := range documented {
		if !names[name] {
			t.Errorf("docs/benchmarks.md describes %s, which no report has", name)
		}
	}
	if len(names) < 40 {
		t.Errorf("a report has only %d names: %v", len(names), slices.Sorted(maps.Keys(names)))
	}
}

// TestBench_Traces sends the recorded requests. The spans that arrive at the agent, counted or
// uncounted, are all spans that were sent.
func TestBench_Traces(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"v0.4":         {"--format=v0.4", "--spans=40000", "--producers=2", "--connections=3"},
		"v0.5":         {"--format=v0.5", "--spans=60000", "--rate=400000"},
		"v1.0":         {"--format=v1.0", "--spans=20000"},
		"left":         {"--spans=10000", "--", "--apm-max-body=65536"},
		"without room": {"--spans=40000", "--", "--ring-slots=512", "--drainers=fixed:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := measured(t, append([]string{"--workload=traces"}, args...)...)
			traces := r.Traces
			requests := traces.Counted.Requests
			if r.SpansAttempted != requests*uint64(traces.SpansPerRequest) || requests < 6 ||
				traces.Proxied.Requests < 6 {
				t.Errorf("%d spans were attempted in %d requests, and %d requests forwarded",
					r.SpansAttempted, requests, traces.Proxied.Requests)
			}
			if *r.AgentHits+traces.LeftToAgent != requests*uint64(traces.CountedPerRequest) ||
				*r.AgentHits != r.SpansAccepted || !traces.AllAccounted {
				t.Errorf("%d hits and %d left to the agent, of %d requests with %d spans to count",
					*r.AgentHits, traces.LeftToAgent, requests, traces.CountedPerRequest)
			}
			switch b := r.Accounting; {
			case name == "left" && (b.Received != 0 || traces.LeftToAgent == 0):
				t.Errorf("of requests that are too large %d spans were received, %d left to the agent",
					b.Received, traces.LeftToAgent)
			case name != "left" &&
				(b.Received != b.Aggregated+r.Dropped["left_to_agent"] || r.DaemonCPU <= 0 &&
					b.Aggregated > 0):
				t.Errorf("the accounting does not agree: %+v", b)
			}
			if traces.Rounds != 5 || traces.Counting.CPU <= 0 || traces.Counting.WholeCPU <= 0 ||
				traces.Proxied.CPU <= 0 || traces.Counted.CPU <= 0 || traces.Counted.TracerCPU <= 0 ||
				traces.Relay.CPU <= 0 || traces.Relay.Requests < 6 ||
				traces.Relay.Answer.Samples != traces.Relay.Requests || traces.TimesRelay <= 0 ||
				traces.TimesWalk == 0 || traces.TimesWhole == 0 ||
				traces.Proxied.Answer.Samples != traces.Proxied.Requests || r.Publish.Samples != requests ||
				traces.BytesPerSpan <= 0 {
				t.Errorf("a figure is missing: %+v", *traces)
			}
		})
	}
}

// TestBench_Profile checks, for every kind of workload, that the compiler and pprof can read the
// profile.
func TestBench_Profile(t *testing.T) {
	t.Parallel()
	for _, workload := range []string{"stable", bench.Traces} {
		t.Run(workload, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "cpu")
			measured(t, "--workload="+workload, "--for=2s", "--rate=1000", "--profile="+path)
			profile, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(profile, []byte("\x1f\x8b")) {
				t.Errorf("what was written is no profile: %.100q", profile)
			}
		})
	}
}

// TestBench_RunningDaemon: a running daemon is measured without a mock agent, and is still running
// afterwards.
func TestBench_RunningDaemon(t *testing.T) {
	t.Parallel()
	socket, at := runningDaemon(t)
	report, _ := measured(t, "--spans=10000", "--batch=100", "--daemon="+at, "--socket="+socket)
	if report.AgentHits != nil || report.HitsEqualAccepted != nil {
		t.Error("there is a figure of an agent that is not ours")
	}
	if report.Accounting.Received != 10000 || report.SpansAccepted != 10000 {
		t.Errorf("the daemon received %d and accepted %d spans of 10000", report.Accounting.Received,
			report.SpansAccepted)
	}
	again, _ := measured(t, "--spans=100", "--batch=10", "--daemon="+at, "--socket="+socket)
	if again.SpansAccepted != 100 {
		t.Errorf("the second time it accepted %d of 100: what was there before is not taken away",
			again.SpansAccepted)
	}
}

// runningDaemon starts a daemon that exports to a mock agent. It returns the path of its socket
// and its HTTP address.
func runningDaemon(t *testing.T) (socket, address string) {
	t.Helper()
	agent, err := standin.Start(standin.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Close() })
	socket = filepath.Join(sockets(t), "s")
	cmd := exec.Command(daemonProgram, "run", "--socket", socket, "--agent-url", agent.URL(), "--http-addr",
		"127.0.0.1:0", "--log-format", "json")
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var line struct{ HTTP string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.HTTP != "" {
			go func() { _, _ = io.Copy(io.Discard, log) }() // so that the daemon does not block on its log
			return socket, "http://" + line.HTTP
		}
	}
	t.Fatal("the daemon ended without saying where it listens")
	return "", ""
}

// sockets returns a directory whose path is short enough for sockets.
func sockets(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestBench_Interrupted: a signal ends the load, but the report is still written. Progress lines
// are printed before.
func TestBench_Interrupted(t *testing.T) {
	t.Parallel()
	cmd := program(t, "bench", "--for=1h", "--rate=10000", "--every=50ms")
	lines, out := io.Pipe()
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		signaled, piece := false, make([]byte, 4096)
		for {
			n, err := lines.Read(piece)
			text.Write(piece[:n])
			if !signaled && strings.Count(text.String(), "\n") >= 4 {
				signaled = true
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
			if err != nil {
				return
			}
		}
	}()
	err := cmd.Wait()
	out.Close()
	<-read
	if err != nil || !strings.Contains(text.String(), "equal to accepted: true") ||
		!strings.Contains(text.String(), "accepted/s") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestBench_Tables: the commands that repeat a measurement print their tables.
func TestBench_Tables(t *testing.T) {
	for args, rows := range map[string]int{
		"all --for=50ms -- --buffer=block":                           14,
		"traces --for=50ms":                                          5,
		"scale --only=cores --for=60ms":                              2 + bits.Len(uint(runtime.NumCPU())),
		"rates --for=100ms --warm-up=10ms --rounds=1 --rates=0,5000": 4,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out, err := program(t, append([]string{"bench"}, strings.Fields(args)...)...).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(out), "\n|") + strings.Count(string(out[:1]), "|"); got != rows {
				t.Errorf("a table of %d lines, want %d:\n%s", got, rows, out)
			}
		})
	}
}

func TestBench_Invalid(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--workload=steady", 2, "stable, pool"},
		{"--keys=some", 2, "--keys"},
		{"--tracer=java", 2, "--tracer"},
		{"--producers=0", 2, "--producers"},
		{"--producers=4 --connections=2", 2, "--connections"},
		{"--origins=2", 2, "--origins"},
		{"--batch=0", 2, "--batch"},
		{"--for=0s", 2, "--for"},
		{"--rate=-1", 2, "--rate"},
		{"--warm-up=10s", 2, "--warm-up"},
		{"--for=1s --profile=cpu", 2, "--for"},
		{"--cpus=100000", 2, "--cpus"},
		{"stable", 2, "after --"},
		{"-- --socket=/x", 2, "set by bench"},
		{"-- --ring-slots=3", 1, "see its log"},
		{"--daemon=http://127.0.0.1:1 --socket=" + missing, 1, "find daemon"},
		{"--daemon=http://127.0.0.1:1 -- --drainers=cpu:1", 2, "runs already"},
		{"--workload=traces --format=v0.7", 2, "v0.4, v0.5, v1.0"},
		{"--workload=traces --batch=3", 2, "leave out"},
		{"-- --apm-socket=/x", 2, "set by bench"},
		{"all stable", 2, "after --"},
		{"all --for=-1s", 2, "--for"},
		{"scale --only=pods", 2, "connections, origins, keys, cores"},
		{"scale --for=0s", 2, "--for"},
		{"rates --rates=-1", 2, "--rates"},
		{"rates --rounds=0", 2, "--rounds"},
		{"tracer", 1, "started by spanstatsd-lab bench"},
		{"relay", 1, "started by spanstatsd-lab bench"},
		{"traces --rate=-1", 2, "--rate"},
	} {
		cmd := program(t, append([]string{"bench"}, strings.Fields(test.args)...)...)
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if code := cmd.ProcessState.ExitCode(); code != test.code ||
			!strings.Contains(string(out), test.want) {
			t.Errorf("bench %s: code %d, output %s; want code %d and %q", test.args, code, out, test.code,
				test.want)
		}
	}
}
