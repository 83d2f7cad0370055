package deploy

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// version is the set of programs of one version.
type version struct{ name, daemon, lab string }

// buildVersion builds the programs of a source tree.
func buildVersion(t *testing.T, name, tree string) version {
	t.Helper()
	v := version{name, filepath.Join(t.TempDir(), "spanstatsd"), ""}
	v.lab = filepath.Join(filepath.Dir(v.daemon), "spanstatsd-lab")
	for _, c := range [][]string{
		{tree, "go", "build", "-o", v.daemon, "./cmd/spanstatsd"},
		{filepath.Join(tree, "lab"), "go", "build", "-o", v.lab, "./cmd/spanstatsd-lab"},
	} {
		cmd := exec.Command(c[1], c[2:]...)
		cmd.Dir = c[0]
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return v
}

// previous returns the previous version; testdata/previous contains its commit.
func previous(t *testing.T) version {
	t.Helper()
	commit := strings.TrimSpace(string(readFile(t, "testdata/previous")))
	look := exec.Command("git", "cat-file", "-e", commit)
	if look.Dir = "../.."; look.Run() != nil {
		t.Skipf("NOT RUN: %s, because the history of the repository is not here, with commit %s", t.Name(),
			commit)
	}
	tree := t.TempDir()
	cmd := exec.Command("sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, tree)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("unpack commit %s: %v\n%s", commit, err, out)
	}
	return buildVersion(t, "previous", tree)
}

// TestVersions_UpgradeAndDowngrade checks one version step in both directions: the configuration stays valid,
// clients and daemons of both versions work together, and a daemon that finds data of the other version
// counts no span twice, and all spans if both versions support that.
func TestVersions_UpgradeAndDowngrade(t *testing.T) {
	old, now := previous(t), buildVersion(t, "this", "../..")
	t.Run("flags of the previous version are accepted", func(t *testing.T) {
		was := flagsOf(t, old)
		for flag := range was {
			// The value may be invalid, but the flag must be known, by its present name or an old one.
			out, _ := exec.Command(now.daemon, "config", "--check", "--"+flag+"=").CombinedOutput()
			if strings.Contains(string(out), "unknown flag") {
				t.Errorf("--%s: %s", flag, out)
			}
		}
		if len(was) < 50 {
			t.Errorf("the previous version has %d flags", len(was))
		}
	})
	for _, pair := range [][2]version{{old, now}, {now, old}} {
		tracers, daemon := pair[0], pair[1]
		t.Run("tracers of the "+tracers.name+" version before a daemon of the "+daemon.name,
			func(t *testing.T) {
				// The exit code is not 0, because each version reads the status of its own schema only.
				out, err := exec.Command(tracers.lab, "bench", "--program", daemon.daemon, "--tracer",
					"client",
					"--workload",
					"pool", "--rate", "20000", "--spans", "40000", "--json").Output()
				var result struct {
					Hits uint64 `json:"agent_hits"`
				}
				if badJSON := json.Unmarshal(out, &result); badJSON != nil || result.Hits != 40000 {
					t.Errorf("the agent has counted %d of 40000 spans: %v\n%s", result.Hits, err, out)
				}
			})
		t.Run("a daemon of the "+daemon.name+" version after a killed one of the "+tracers.name,
			func(t *testing.T) {
				takeOver(t, tracers, daemon)
			})
	}
}

// flagsOf returns the flags of a version's run command.
func flagsOf(t *testing.T, v version) map[string]bool {
	t.Helper()
	out, err := exec.Command(v.daemon, "run", "--help", "--all").Output()
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, flag := range regexp.MustCompile(`(?m)^ +--([a-z0-9-]+)`).FindAllStringSubmatch(string(out), -1) {
		flags[flag[1]] = true
	}
	return flags
}

// takeOver kills a daemon while a client has undelivered spans, and starts one of another version at
// its socket.
func takeOver(t *testing.T, first, then version) {
	const spans = 1000
	dir := t.TempDir()
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "agent")})
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	socket := filepath.Join(dir, "s")
	killed, _ := runVersion(t, first, socket, agent)
	c, err := client.Open(client.Config{
		Socket: socket, MaxAge: time.Millisecond,
		MaxBackoff: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	batch := make([]client.Snapshot, spans)
	for i := range batch {
		batch[i] = client.Snapshot{
			Key:      client.Key{Service: "shop", Operation: "op", Resource: "GET /", Kind: "server"},
			End:      time.Now(),
			TopLevel: true,
		}
	}
	c.Publish(batch)
	eventually.True(t, "the daemon has all", func() bool { return c.Stats().Sent == spans })
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	next, logLines := runVersion(t, then, socket, agent)
	eventually.True(t, "the client is back", func() bool { return c.Stats().Connects == 2 })
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := next.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range logLines { // until the end of its log
	}
	if err := next.Wait(); err != nil {
		t.Errorf("the next daemon exited with %v", err)
	}
	stats, hits := c.Stats(), agent.Totals().Hits
	if named := stats.Unconfirmed + stats.Ambiguous; hits > spans || hits+named < spans {
		t.Errorf("of %d spans the agent has %d, and the client reports %d: %+v", spans, hits, named, stats)
	}
	t.Logf("the agent has %d of %d; the client reports at most %d as lost, %d as ambiguous", hits, spans,
		stats.Unconfirmed,
		stats.Ambiguous)
}

// runVersion starts a daemon and waits until it listens. The channel receives its later log lines and
// is closed at its end.
func runVersion(t *testing.T, v version, socket string, agent *standin.Agent) (*exec.Cmd, <-chan string) {
	t.Helper()
	cmd := exec.Command(v.daemon, "run", "--socket", socket, "--agent-url", agent.URL(), "--http-addr",
		"127.0.0.1:0",
		"--log-format", "json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	logLines := make(chan string, 1000)
	go func() {
		defer close(logLines)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			var line struct{ Msg string }
			_ = json.Unmarshal(lines.Bytes(), &line)
			logLines <- line.Msg
		}
	}()
	for line := range logLines {
		if strings.HasPrefix(line, "listening for ") { // clients; the previous version says tracers
			return cmd, logLines
		}
	}
	t.Fatalf("a daemon of the %s version exited at startup", v.name)
	return nil, nil
}
