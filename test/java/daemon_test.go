//go:build languages

package java

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// program is the daemon binary, built once.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "java")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "spanstatsd")
	build := exec.Command("go", "build", "-o", program, "./cmd/spanstatsd")
	build.Dir, build.Stderr = "../..", os.Stderr
	if err := build.Run(); err != nil {
		panic("build the daemon: " + err.Error())
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// daemon is a running daemon.
type daemon struct {
	otlp, http string // listen addresses
	command    *exec.Cmd
}

// start starts a daemon for an agent, with an OTLP receiver.
func start(t *testing.T, l *ledger, socket string) *daemon {
	t.Helper()
	d := &daemon{command: exec.Command(program, "run", "--socket", socket, "--agent-url", l.agent.URL(),
		"--http-addr", "127.0.0.1:0", "--otlp-addr", "127.0.0.1:0", "--log-format", "json",
		"--shutdown-grace", "2m")}
	d.command.Env = []string{"PATH=" + os.Getenv("PATH")}
	log, err := d.command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if d.command.ProcessState == nil {
			d.kill(t)
		}
	})
	lines := bufio.NewScanner(log)
	for (d.http == "" || d.otlp == "") && lines.Scan() {
		var line struct{ Msg, Addr, HTTP string }
		_ = json.Unmarshal(lines.Bytes(), &line)
		switch {
		case line.Msg == "receiving OTLP":
			d.otlp = line.Addr
		case line.HTTP != "":
			d.http = line.HTTP
		}
	}
	if d.otlp == "" || d.http == "" {
		t.Fatal("the daemon says nowhere that it listens")
	}
	go func() {
		for lines.Scan() { // read everything, so that the daemon never blocks on its log
		}
	}()
	return d
}

func (d *daemon) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := d.command.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// stop shuts the daemon down gracefully, so that its agent has all counted spans.
func (d *daemon) stop(t *testing.T) {
	t.Helper()
	d.signal(t, syscall.SIGTERM)
	if err := d.command.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}

func (d *daemon) kill(t *testing.T) {
	t.Helper()
	d.signal(t, syscall.SIGKILL)
	_ = d.command.Wait()
}

// status returns the daemon's status.
func (d *daemon) status(t *testing.T) (s status.Status) {
	t.Helper()
	resp, err := http.Get("http://" + d.http + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}
