//go:build !race

package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

const smallest = 64 << 20 // memory limit in which a daemon with default settings must work

// TestMemoryLimit_AllReceivers floods all receivers of a daemon in a control group while its destinations don't
// respond, and then holds all their connections in the middle of requests. The daemon is not killed, its heap and its
// resident memory stay within the sum that it has stated at its start, and its accounting balances. (The race detector takes
// several times as much.)
func TestMemoryLimit_AllReceivers(t *testing.T) {
	for name, test := range map[string]struct {
		limit int
		args  []string
	}{
		"native protocol": {64 << 20, []string{"--max-connections=128"}},
		"OpenTelemetry, scraped": {192 << 20, []string{
			"--apm-socket=apm", "--otlp-socket=otlp", "--zipkin-socket=zipkin", "--prometheus",
			"--max-aggregates=1024",
		}},
		"Datadog, forwarded": {256 << 20, []string{
			"--apm-socket=apm", "--otlp-socket=otlp", "--zipkin-socket=zipkin",
			"--otlp-semantics=datadog", "--otlp-forward=unix://collector", "--otlp-keep=0.5",
			"--zipkin-forward=unix://collector", "--otlp-metrics-endpoint=unix://collector",
			"--otlp-temporality=cumulative", "--drainers=fixed:2", "--max-aggregates=1024",
		}},
	} {
		t.Run(name, func(t *testing.T) { floodReceivers(t, confine, test.limit, 1_000, test.args) })
	}
}

// TestMemoryLimit_Program floods daemons with little more memory than the program needs, without collecting their
// garbage for measurements. They stay within the sum that they have stated, which includes the pages of the program,
// and they end in order.
func TestMemoryLimit_Program(t *testing.T) {
	byVariable := func(_ *testing.T, cmd *exec.Cmd, limit int) string {
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", limit))
		return "GOMEMLIMIT"
	}
	for name, confine := range map[string]confinement{"control group": confine, "GOMEMLIMIT": byVariable} {
		for _, mib := range []int{40, 48} {
			t.Run(fmt.Sprintf("%s, %d MiB", name, mib), func(t *testing.T) {
				floodReceivers(t, confine, mib<<20, 40_000, nil)
			})
		}
	}
}

// confinement limits the memory of a command, and returns the method.
type confinement func(t *testing.T, cmd *exec.Cmd, limit int) string

// floodReceivers floods a daemon with a memory limit, with a number of spans from each connection of the native
// protocol. With many spans, it measures the live memory only afterwards, because that collects the garbage.
func floodReceivers(t *testing.T, confine confinement, limit, spans int, args []string) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	agent.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path == pathStats {
			return standin.Fault{Kind: standin.Hang}
		}
		return standin.Fault{}
	})
	collector := startAgent(t, "unix", filepath.Join(dir, "collector"))
	f := &flood{t: t, socket: filepath.Join(dir, "s"), receivers: map[string]string{}}
	for i, arg := range args {
		flag, socket, _ := strings.Cut(arg, "=")
		if receiver, isReceiver := strings.CutSuffix(flag, "-socket"); isReceiver {
			args[i] = flag + "=" + filepath.Join(dir, socket)
			f.receivers[strings.TrimPrefix(receiver, "--")] = filepath.Join(dir, socket)
		}
		args[i] = strings.Replace(args[i], "unix://", "unix://"+dir+"/", 1)
	}
	cmd := program(t, append([]string{
		"run", "--socket=" + f.socket, "--agent-url=" + agent.URL(), "--http-addr=127.0.0.1:0", "--log-format=json",
		"--flush-interval=1s", "--debug", "--cardinality-limit=resource=50000,peer_tag=50000",
	}, args...)...)
	source := confine(t, cmd, limit)
	daemon, _ := listening(t, cmd)
	f.limits = daemon.status()
	stated := f.limits.Memory.TotalBytes
	if stated > int64(limit) {
		t.Errorf("the daemon reports a limit of %d bytes, want %d", stated, limit)
	}

	messages := map[string]func() []message{"apm": f.datadog, "otlp": f.otlp, "zipkin": f.zipkin}
	for receiver := range f.receivers {
		f.sendAll(receiver, messages[receiver](), 0) // the limit allows one after another
	}
	collector.SetFault(func(*http.Request) standin.Fault { return standin.Fault{Kind: standin.Hang} })
	most := int64(0)
	sample := func() { most = max(most, daemon.liveBytes()) }
	flooding := make(chan struct{})
	go func() {
		defer close(flooding)
		var senders sync.WaitGroup
		senders.Go(func() { f.spans(spans) })
		for receiver := range f.receivers {
			senders.Go(func() {
				f.atOnce(floodConnections, func(connection int) { f.sendAll(receiver, messages[receiver](), connection) })
			})
		}
		senders.Wait()
	}()
	for isFlooding := true; isFlooding; {
		select {
		case <-flooding:
			isFlooding = false
		case <-time.After(200 * time.Millisecond):
			if spans <= 1_000 {
				sample()
			}
		}
	}
	filled := daemon.status()
	release := f.hold(daemon.http)
	for range 15 {
		sample()
	}
	release()
	peak := peakResident(t, daemon.Process.Pid)
	t.Logf("%s: %d MiB stated, at most %d MiB live, %d MiB resident; %d spans", source, stated>>20, most>>20, peak>>20,
		filled.Accounting.Received)
	if filled.Collapsed["whole_key"] == 0 {
		t.Errorf("the table of aggregates was never full: %v", filled.Collapsed)
	}
	for receiver, d := range filled.Receivers {
		if d.Requests["counted"] == 0 {
			t.Errorf("%s counted nothing: %v", receiver, d.Requests)
		}
	}
	if apm := filled.Receivers["apm"]; apm != nil && apm.Statistics["merged"] == 0 {
		t.Errorf("no statistics were merged: %v", apm.Statistics)
	}
	if most > stated {
		t.Errorf("%d bytes of the heap were live, the stated limit is %d", most, stated)
	}
	if int64(peak) > stated {
		t.Errorf("%d bytes were resident, the stated limit is %d", peak, stated)
	}
	agent.SetFault(nil)
	collector.SetFault(nil)
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, log := daemon.exit()
	if code != 0 || !slices.ContainsFunc(log, func(line map[string]any) bool { return line["balanced"] == true }) {
		t.Errorf("exit code %d, log %v", code, log)
	}
}

// status returns the status of a daemon.
func (p *process) status() (s status.Status) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(p.get("/status")), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// liveBytes returns the size of a daemon's heap after a collection, plus its stacks.
func (p *process) liveBytes() (sum int64) {
	p.t.Helper()
	profile := p.get("/debug/pprof/heap?gc=1&debug=1")
	for _, figure := range regexp.MustCompile(`(?m)^# (?:HeapAlloc|Stack) = ([0-9]+)`).FindAllStringSubmatch(profile, -1) {
		bytes, err := strconv.ParseInt(figure[1], 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		sum += bytes
	}
	return sum
}

// TestMemoryLimit_RegularRows checks that a daemon with 64 MiB keeps all names of 30 services with 100
// resources and 25 distinct durations each over several intervals, even if it also acts as the agent
// for tracers.
func TestMemoryLimit_RegularRows(t *testing.T) {
	for name, more := range map[string][]string{
		"spans":            nil,
		"spans and traces": {"--apm-addr=127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := sockets(t)
			agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
			socket := filepath.Join(dir, "s")
			cmd := program(t, append([]string{
				"run", "--socket=" + socket, "--agent-url=" + agent.URL(),
				"--http-addr=127.0.0.1:0", "--log-format=json", "--flush-interval=1s",
			}, more...)...)
			source := confine(t, cmd, smallest)
			daemon, startLine := listening(t, cmd)
			published, completeRounds, rounds, before, wasComplete := 0, 0, 0, 0.0, false
			aggregates := func() float64 { return metric(daemon.get("/metrics"), "spanstatsd_aggregates") }
			collapsed := func() float64 {
				return metric(daemon.get("/metrics"), `spanstatsd_spans_collapsed_total{field="whole_key"}`)
			}
			for ; completeRounds < 3 && rounds < 60; rounds++ {
				eventually.True(t, "the interval ends", func() bool { return aggregates() == 0 })
				for service := range 30 {
					published += publishRows(t, socket, fmt.Sprintf("shop-%d", service), 100, 25)
				}
				isComplete := aggregates() >= 3000 // all of the round is in one interval
				after := collapsed()
				if isComplete && wasComplete && after == before { // names of the previous interval have rows
					completeRounds++
				}
				before, wasComplete = after, isComplete
			}
			exposed, peak := daemon.get("/metrics"), peakResident(t, daemon.Process.Pid)
			t.Logf("%s: --max-aggregates=%v, chosen for %v; %d rounds, %d of them complete: at most "+
				"%d MiB resident",
				source, startLine["max_aggregates"], startLine["max_aggregates_from"], rounds, completeRounds, peak>>20)
			if completeRounds < 3 || peak > smallest {
				t.Errorf("%d rounds of 3000 rows are complete, %d bytes were resident", completeRounds, peak)
			}
			for _, label := range append(span.LabelNames(), "origin") {
				if n := metric(exposed, `spanstatsd_spans_collapsed_total{field="`+label+`"}`); n != 0 {
					t.Errorf("%g spans have no %s", n, label)
				}
			}
			if n := metric(exposed, "spanstatsd_spans_coarsened_total"); n != 0 {
				t.Errorf("%g spans were counted in another bin", n)
			}
			if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code, log := daemon.exit(); code != 0 || log[len(log)-1]["balanced"] != true {
				t.Errorf("exit code %d, last line %v", code, log[len(log)-1])
			}
			if got := agent.Totals(); got.Hits != uint64(published) || len(got.Rows) < 3000 ||
				len(got.Rows) > 3001 {
				t.Errorf("the agent has %d of %d hits in %d rows", got.Hits, published, len(got.Rows))
			}
		})
	}
}

// publishRows publishes the given number of spans for each resource of a service, as a separate tracer,
// and returns the total.
func publishRows(t *testing.T, socket, service string, resources, spans int) int {
	t.Helper()
	c, err := client.Open(client.Config{
		Socket: socket, Origin: client.Origin{Service: service},
		MaxKept: client.KeepNothing, // so that Close waits for no acknowledgement
	})
	if err != nil {
		t.Fatal(err)
	}
	for resource := range resources {
		batch := make([]client.Snapshot, spans)
		for i := range batch {
			batch[i] = client.Snapshot{
				Key: client.Key{
					Service: service, Operation: "http.request",
					Resource: fmt.Sprintf("GET /api/v1/accounts/section-%d/items", resource), Type: "web",
					Kind: "server", HTTPStatus: 200, HTTPMethod: "GET",
				},
				Duration: time.Millisecond << (i % 12) * time.Duration(100+i) / 100, End: time.Now(),
				Error: i == 7, TopLevel: true,
			}
		}
		if !c.Publish(batch) {
			t.Fatal("a batch was rejected")
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return resources * spans
}

// confine makes a command run in a control group (v1 or v2) with a memory limit if the test has the
// permission, and otherwise with GOMEMLIMIT. It returns the method.
func confine(t *testing.T, cmd *exec.Cmd, limit int) string {
	for _, version := range []struct{ mount, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		group, err := os.MkdirTemp(version.mount, "spanstatsd-test-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // empty once the daemon has ended
		file, err := os.OpenFile(filepath.Join(group, version.limit), os.O_WRONLY, 0)
		if err != nil {
			continue // the directory exists, but without the controller
		}
		_, err = fmt.Fprint(file, limit)
		if err = errors.Join(err, file.Close()); err != nil {
			continue
		}
		// A copy is charged for its own pages, like the program of a container.
		cmd.Args = append([]string{
			"sh", "-c", `echo $$ > "$0/cgroup.procs" && cp "$1" "$2" && shift && exec "$@"`, group,
			cmd.Path, filepath.Join(t.TempDir(), "spanstatsd"),
		}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		return "a control group"
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", limit))
	return "GOMEMLIMIT"
}

// peakResident returns the peak resident memory of a process.
func peakResident(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, isAlive := bytes.Cut(status, []byte("VmHWM:"))
	if !isAlive {
		t.Fatal("the daemon has exited; it was probably killed for its memory usage")
	}
	kibibytes, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
