package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// target is the measured daemon.
type target struct {
	socket string
	apm    string // Datadog trace socket, if it is measured
	http   string // base URL
	pid    int
	agent  *standin.Agent // nil if the daemon was already running
	cmd    *exec.Cmd      // nil if the daemon was already running
	dir    string
	exited chan error
}

// aim returns the daemon that is already running. It finds the process that listens on the
// daemon's socket.
func aim(c *Config) (*target, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: c.Socket})
	if err != nil {
		return nil, fmt.Errorf("find daemon: %w; set --socket, too", err)
	}
	defer conn.Close()
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return nil, fmt.Errorf("find daemon: %w", err)
	}
	if peer.PID == 0 {
		return nil, errors.New("find daemon: its process can't be seen from here; run bench where it runs")
	}
	return &target{socket: c.Socket, http: c.Daemon, pid: int(peer.PID)}, nil
}

// startTarget starts a mock agent and a daemon that exports to it, unless a daemon is already
// running.
func startTarget(c *Config) (t *target, err error) {
	if c.Daemon != "" {
		return aim(c)
	}
	t = &target{exited: make(chan error, 1)}
	defer func() {
		if err != nil {
			t.kill()
			t = nil
		}
	}()
	if t.dir, err = os.MkdirTemp("", "spanstatsd-bench"); err != nil {
		return t, fmt.Errorf("make directory for the sockets: %w", err)
	}
	t.socket = filepath.Join(t.dir, "spans.sock")
	if t.agent, err = standin.Start(standin.Config{
		Network: "unix",
		Address: filepath.Join(t.dir, "agent.sock"),
	}); err != nil {
		return t, err
	}
	arguments := append([]string{
		"run", "--socket=" + t.socket, "--agent-url=" +
			t.agent.URL(), "--http-addr=127.0.0.1:0", "--log-format=json",
	}, c.Flags...)
	if c.Workload == Traces {
		t.apm = filepath.Join(t.dir, "apm.sock")
		arguments = append(arguments, "--apm-socket="+t.apm)
	}
	if c.Profile != "" {
		arguments = append(arguments, "--debug")
	}
	if t.cmd, err = daemonProgram(c.Program, arguments...); err != nil {
		return t, err
	}
	t.cmd.Env = append(os.Environ(), c.Env...)
	logs, err := t.cmd.StderrPipe()
	if err != nil {
		return t, fmt.Errorf("start daemon: %w", err)
	}
	if err = measure.Start(t.cmd, c.CPUs); err != nil {
		return t, fmt.Errorf("start daemon: %w", err)
	}
	t.pid = t.cmd.Process.Pid
	listening := make(chan string, 1)
	go func() {
		follow(logs, c.Log, listening)
		t.exited <- t.cmd.Wait()
	}()
	select {
	case address := <-listening:
		t.http = "http://" + address
		return t, nil
	case err := <-t.exited:
		t.exited <- err
		return t, errors.New("start daemon: it ended at once; see its log")
	case <-time.After(limit):
		return t, fmt.Errorf("start daemon: it did not listen within %s", limit)
	}
}

// follow reads a daemon's log to its end. It sends the daemon's address on listening, and
// copies messages above level info to warnings.
func follow(logs io.Reader, warnings io.Writer, listening chan<- string) {
	lines := bufio.NewScanner(logs)
	for lines.Scan() {
		var line struct{ Level, Msg, HTTP string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && (line.Level == "INFO" || line.Level == "DEBUG") {
			if line.HTTP != "" {
				select {
				case listening <- line.HTTP:
				default:
				}
			}
			continue
		}
		fmt.Fprintf(warnings, "daemon: %s\n", lines.Bytes())
	}
	_, _ = io.Copy(io.Discard, logs) // after an overlong line, so that the daemon does not block
}

// atRest is how long the accounting must be unchanged to be considered final.
const atRest = 30 * time.Second

// awaitAccounting waits until the accounting balances with the given number of received spans. If
// the daemon lost some, it returns when the accounting has been unchanged for atRest.
func (t *target) awaitAccounting(received uint64) error {
	var moved uint64
	for since := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		has, err := readAccounting(t.http)
		if err != nil || has.Balanced && has.Received >= received {
			return err
		}
		if now := has.Received + has.Aggregated; now != moved {
			moved, since = now, time.Now()
		}
		if time.Since(since) > atRest {
			return fmt.Errorf("wait for the accounting: the daemon has received %d of %d spans and no more for "+
				"%s, and its accounting is balanced: %v",
				has.Received, received, atRest, has.Balanced)
		}
	}
}

// stop shuts down a daemon that bench started.
func (t *target) stop() error {
	if t.cmd == nil {
		return nil
	}
	if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop daemon: %w", err)
	}
	select {
	case err := <-t.exited:
		t.exited <- err
		if err != nil {
			return fmt.Errorf("stop daemon: %w", err)
		}
		return nil
	case <-time.After(limit):
		return fmt.Errorf("stop daemon: it did not end within %s", limit)
	}
}

// kill kills the daemon and releases all resources, in any state.
func (t *target) kill() {
	if t.cmd != nil && t.cmd.Process != nil {
		_ = t.cmd.Process.Kill() // fails if it has already ended
		<-t.exited
	}
	if t.agent != nil {
		_ = t.agent.Close()
	}
	if t.dir != "" {
		_ = os.RemoveAll(t.dir)
	}
}
