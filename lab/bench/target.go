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

// target is the daemon that is measured.
type target struct {
	socket string
	apm    string // socket for traces, where they are measured
	http   string // base URL
	pid    int
	agent  *standin.Agent // nil where the daemon is somebody else's
	cmd    *exec.Cmd      // the same
	dir    string
	exited chan error
}

// aim finds the daemon that runs already, by who listens on its socket.
func aim(c *Config) (*target, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: c.Socket})
	if err != nil {
		return nil, fmt.Errorf("find daemon: %w; give its --socket too", err)
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

// startTarget starts an agent, and a daemon before it, unless one runs already.
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
		return t, errors.New("start daemon: it ended at once; its log says why")
	case <-time.After(limit):
		return t, fmt.Errorf("start daemon: it did not listen within %s", limit)
	}
}

// follow reads a daemon's log to its end: it says where the daemon listens, and
// passes on what is more than information.
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
	_, _ = io.Copy(io.Discard, logs) // after a line too long, so that the daemon can go on
}

// atRest is how long the books may stand still before they are as they will be.
const atRest = 30 * time.Second

// awaitBooks waits until the books are at rest and balance with so many spans received. That
// they stand still without is for a daemon that has lost some.
func (t *target) awaitBooks(received uint64) error {
	var moved uint64
	for since := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		has, err := books(t.http)
		if err != nil || has.Balanced && has.Received >= received {
			return err
		}
		if now := has.Received + has.Aggregated; now != moved {
			moved, since = now, time.Now()
		}
		if time.Since(since) > atRest {
			return fmt.Errorf("wait for the books: the daemon has received %d of %d spans and no more for "+
				"%s, and its books say balanced: %v",
				has.Received, received, atRest, has.Balanced)
		}
	}
}

// stop ends a daemon that we started, in order.
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

// kill leaves nothing behind, whatever state it is in.
func (t *target) kill() {
	if t.cmd != nil && t.cmd.Process != nil {
		_ = t.cmd.Process.Kill() // fails where it has ended already
		<-t.exited
	}
	if t.agent != nil {
		_ = t.agent.Close()
	}
	if t.dir != "" {
		_ = os.RemoveAll(t.dir)
	}
}
