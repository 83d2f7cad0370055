//go:build !race

package program

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

const smallest = 64 << 20 // what a daemon with its defaults must live in

// TestSmallMemoryAgrees floods a daemon of 64 MiB with keys that are all new: it
// lives, its books balance, and the agent has what was accepted. (The race
// detector takes several times as much.)
func TestSmallMemoryAgrees(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	cmd := program(t, "run", "--socket", socket, "--agent-url", "unix://"+filepath.Join(dir, "agent"),
		"--http-addr", "127.0.0.1:0", "--log-format", "json")
	source := confine(t, cmd)
	daemon, said := listening(t, cmd)
	if at := fmt.Sprint(said["memory_at_most"]); !regexp.MustCompile(`^[0-9]{2} MiB$`).MatchString(at) {
		t.Errorf("it says that it may use %s", at)
	}
	flood := exec.Command(labProgram, "bench", "--daemon", "http://"+daemon.http, "--socket", socket,
		"--workload", "adversarial", "--producers", "2", "--connections", "20", "--origins", "10", "--spans",
		"3000000", "--for", "60s")
	if out, err := flood.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	peak := peakResident(t, daemon.Process.Pid)
	t.Logf("%s: at most %d MiB resident", source, peak>>20)
	if peak > smallest {
		t.Errorf("%d bytes were resident", peak)
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, log := daemon.exit()
	last := log[len(log)-1]
	if code != 0 || last["balanced"] != true {
		t.Errorf("exit code %d, last line %v", code, last)
	}
	if hits := agent.Totals().Hits; float64(hits) != last["flushed"] || hits == 0 {
		t.Errorf("the agent has %d hits, the daemon's last line is %v", hits, last)
	}
}

// TestHonestRowsFitInSmallMemory: a daemon of 64 MiB keeps all names of 30 services with 100
// resources each and 25 different durations of each, in one interval after the other, also where
// it is the agent to tracers as well.
func TestHonestRowsFitInSmallMemory(t *testing.T) {
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
			source := confine(t, cmd)
			daemon, said := listening(t, cmd)
			published, kept, rounds, before, wasWhole := 0, 0, 0, 0.0, false
			aggregates := func() float64 { return metric(daemon.get("/metrics"), "spanstatsd_aggregates") }
			nameless := func() float64 {
				return metric(daemon.get("/metrics"), `spanstatsd_spans_collapsed_total{field="whole_key"}`)
			}
			for ; kept < 3 && rounds < 60; rounds++ {
				eventually.True(t, "the interval ends", func() bool { return aggregates() == 0 })
				for service := range 30 {
					published += publishRows(t, socket, fmt.Sprintf("shop-%d", service), 100, 25)
				}
				isWhole := aggregates() >= 3000 // no boundary was within the round
				after := nameless()
				if isWhole && wasWhole && after == before { // what came in the interval before has its row
					kept++
				}
				before, wasWhole = after, isWhole
			}
			exposed, peak := daemon.get("/metrics"), peakResident(t, daemon.Process.Pid)
			t.Logf("%s: --max-aggregates=%v, chosen for %v; %d rounds, %d of them with all names: at most "+
				"%d MiB resident",
				source, said["max_aggregates"], said["max_aggregates_from"], rounds, kept, peak>>20)
			if kept < 3 || peak > smallest {
				t.Errorf("%d rounds of 3000 rows kept all names, %d bytes were resident", kept, peak)
			}
			for _, label := range append(span.LabelNames(), "origin") {
				if n := metric(exposed, `spanstatsd_spans_collapsed_total{field="`+label+`"}`); n != 0 {
					t.Errorf("%g spans have lost their %s", n, label)
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

// publishRows publishes so many spans of each resource of a service, as a tracer of its
// own, and says how many that are.
func publishRows(t *testing.T, socket, service string, resources, spans int) int {
	t.Helper()
	c, err := client.Open(client.Config{
		Socket: socket, Origin: client.Origin{Service: service},
		MaxKept: client.KeepNothing, // so that Close waits for no report
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
			t.Fatal("a batch was refused")
		}
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return resources * spans
}

// confine has a command run in a control group of 64 MiB, of either version, where
// the test may make one, and else with GOMEMLIMIT. It says which.
func confine(t *testing.T, cmd *exec.Cmd) string {
	name := fmt.Sprintf("spanstatsd-test-%d", os.Getpid())
	for _, version := range []struct{ mount, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		group := filepath.Join(version.mount, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // it is empty once the daemon has ended
		if os.WriteFile(filepath.Join(group, version.limit), strconv.AppendInt(nil, smallest, 10),
			0o644) != nil {
			continue // a directory, but no controller in it
		}
		cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group, cmd.Path},
			cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		return "a control group"
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", smallest))
	return "GOMEMLIMIT"
}

// peakResident is the most that a process ever had resident.
func peakResident(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	kibibytes, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
