package program

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// stalledPipe returns a full pipe.
func stalledPipe(t *testing.T) (write, read *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close(); write.Close() })
	raw, err := write.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var full error
	if err := raw.Control(func(fd uintptr) {
		for full == nil {
			_, full = syscall.Write(int(fd), make([]byte, 4096))
		}
	}); err != nil || !errors.Is(full, syscall.EAGAIN) {
		t.Fatal(err, full)
	}
	return write, read
}

// silentDaemon starts a daemon with a log that the test does not read, and waits until it responds.
func silentDaemon(t *testing.T, stderr *os.File, agent, socket string) *process {
	t.Helper()
	address := freePort(t)
	cmd := program(t, "run", "--socket", socket, "--agent-url", agent, "--http-addr", address, "--log-level",
		"debug", "--flush-interval", "1s")
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p := &process{Cmd: cmd, t: t, http: address}
	eventually.True(t, "the daemon is ready", func() bool { return strings.Contains(p.get("/readyz"), "ok") })
	return p
}

// get returns the response of the HTTP address, or "" if there is none.
func (p *process) get(path string) string {
	response, err := http.Get("http://" + p.http + path)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return string(body)
}

// A log that is not read blocks neither deliveries nor shutdown. An agent that fails at first, which
// causes warnings, gets every span, and SIGTERM ends the daemon.
func TestLog_StalledBlocksNothing(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	failures := 0
	agent.SetFault(func(*http.Request) standin.Fault {
		if failures++; failures < 3 {
			return standin.Fault{Kind: standin.Answer, Status: http.StatusServiceUnavailable}
		}
		return standin.Fault{}
	})
	stderr, _ := stalledPipe(t)
	socket := filepath.Join(dir, "s")
	daemon := silentDaemon(t, stderr, agent.URL(), socket)
	publishOne(t, socket)
	eventually.True(t, "the agent has the span", func() bool { return agent.Totals().Hits == 1 })
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon ended with %v", err)
	}
}

// A closed log pipe does not kill the daemon, and the lost lines are counted.
func TestLog_ClosedPipe(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	read, stderr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer stderr.Close()
	socket := filepath.Join(dir, "s")
	daemon := silentDaemon(t, stderr, agent.URL(), socket)
	eventually.True(t, "a lost line is counted",
		func() bool { return metric(daemon.get("/metrics"), "spanstatsd_log_lines_lost_total") > 0 })
	publishOne(t, socket)
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Wait(); err != nil || agent.Totals().Hits != 1 {
		t.Errorf("the daemon ended with %v; the agent counted %d of 1 span", err, agent.Totals().Hits)
	}
}

// SIGHUP, as sent by a closing terminal, shuts the daemon down gracefully, like SIGTERM.
func TestHangup_StopsGracefully(t *testing.T) {
	// Under nohup, child processes would inherit the ignored signal. They don't inherit the handling of
	// a signal for which signal.Notify was called.
	notified := make(chan os.Signal, 1)
	signal.Notify(notified, syscall.SIGHUP)
	defer signal.Stop(notified)
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon := daemonProcess(t, agent.URL(), socket)
	publishOne(t, socket)
	if err := daemon.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	code, log := daemon.exit()
	if last := log[len(log)-1]; code != 0 || last["msg"] != "stopped" || last["flushed"] != 1.0 {
		t.Errorf("exit code %d, last line %v", code, last)
	}
}

func publishOne(t *testing.T, socket string) {
	t.Helper()
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{Service: "a", Operation: "b", Resource: "c"},
		End: time.Now(),
	}})
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// metric returns a value of an exposition, or 0 if it is missing.
func metric(exposition, name string) float64 {
	for line := range strings.Lines(exposition) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			number, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return number
		}
	}
	return 0
}
