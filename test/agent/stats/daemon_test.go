package stats

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// program is the daemon binary, built from this repository.
var program string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ta")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program = filepath.Join(dir, "spanstatsd")
		build := exec.Command("go", "build", "-o", program, "./cmd/spanstatsd")
		build.Dir, build.Stderr = filepath.Join("..", "..", ".."), os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build the daemon:", err)
			return 1
		}
		return m.Run()
	}())
}

// daemon is a running daemon.
type daemon struct {
	t      *testing.T
	socket string
	http   string
	cmd    *exec.Cmd

	mu  sync.Mutex
	log []map[string]any
	end chan struct{} // closed at the end of the log
}

// startDaemon starts a daemon for an agent and waits until it listens.
func startDaemon(t *testing.T, socket, agent string, args ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, socket: socket, end: make(chan struct{})}
	d.cmd = exec.Command(program, append([]string{
		"run", "--socket", socket, "--agent-url", agent, "--http-addr", "127.0.0.1:0", "--log-format", "json",
		"--mask-names=never",
	}, args...)...)
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Kill(); <-d.end; _ = d.cmd.Wait() })
	listens := make(chan string, 1)
	go func() {
		defer close(d.end)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			line := map[string]any{"msg": lines.Text()}
			_ = json.Unmarshal(lines.Bytes(), &line) // not JSON: stays text
			d.mu.Lock()
			d.log = append(d.log, line)
			d.mu.Unlock()
			if line["msg"] == "listening for clients" {
				listens <- line["http"].(string)
			}
		}
	}()
	select {
	case d.http = <-listens:
	case <-d.end:
		t.Fatalf("the daemon did not start: %v", d.log)
	}
	return d
}

// accounting is the daemon's accounting of all spans.
type accounting struct {
	Received, Aggregated, Flushed, Unsent, Pending uint64
	Balanced                                       bool
}

func (d *daemon) accounting() accounting {
	d.t.Helper()
	resp, err := http.Get("http://" + d.http + "/status")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var status struct{ Accounting accounting }
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		d.t.Fatal(err)
	}
	return status.Accounting
}

// unsent returns the number of spans dropped for a reason.
func (d *daemon) unsent(reason string) string {
	d.t.Helper()
	return d.metric(fmt.Sprintf("spanstatsd_spans_unsent_total{destination=\"agent\",reason=%q}", reason))
}

// metric returns a value from /metrics.
func (d *daemon) metric(name string) string {
	d.t.Helper()
	resp, err := http.Get("http://" + d.http + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	d.t.Fatalf("no %s in /metrics", name)
	return ""
}

// stop shuts the daemon down gracefully and checks that its accounting balances.
func (d *daemon) stop() {
	d.t.Helper()
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	<-d.end
	_ = d.cmd.Wait() // the exit code has the result
	if last := d.stopped(); last["balanced"] != true || last["pending"] != 0.0 {
		d.t.Errorf("log line of the shutdown %v", last)
	}
}

// stopped returns the log line with the final accounting.
func (d *daemon) stopped() map[string]any {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, line := range d.log {
		if line["msg"] == "stopped" {
			return line
		}
	}
	return nil
}

// tracer connects a client to the daemon.
func (d *daemon) tracer(origin client.Origin) *client.Client {
	d.t.Helper()
	c, err := client.Open(client.Config{
		Socket: d.socket, Origin: origin, MaxAge: time.Millisecond,
		BufferBytes: 16 << 20,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = c.Close(ctx)
	})
	return c
}

// publish publishes spans in batches of a size that any client accepts.
func publish(t *testing.T, c *client.Client, spans []client.Snapshot) {
	t.Helper()
	for len(spans) > 0 {
		n := min(len(spans), 100)
		if !c.Publish(spans[:n]) {
			t.Fatalf("the client rejected spans: %+v", c.Stats())
		}
		spans = spans[n:]
	}
}

// here returns a new directory that is removed at the end of the test.
func here(t *testing.T) place {
	t.Helper()
	dir, err := os.MkdirTemp("", "ta")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return place(dir)
}
