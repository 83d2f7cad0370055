package program

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
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
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// process is a running daemon.
type process struct {
	*exec.Cmd
	t     *testing.T
	lines chan map[string]any // log lines
	http  string              // HTTP address
}

// daemonProcess starts a daemon and waits until it listens.
func daemonProcess(t *testing.T, agent, socket string, args ...string) *process {
	t.Helper()
	p, _ := daemonWithLog(t, agent, socket, args...)
	return p
}

// daemonWithLog is daemonProcess, and also returns the log line with the addresses.
func daemonWithLog(t *testing.T, agent, socket string, args ...string) (*process, map[string]any) {
	t.Helper()
	return listening(t, program(t, append([]string{
		"run", "--socket", socket, "--agent-url", agent, "--http-addr", "127.0.0.1:0", "--log-format", "json",
	}, args...)...))
}

// listening starts a daemon's command and waits until it listens.
func listening(t *testing.T, cmd *exec.Cmd) (*process, map[string]any) {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	p := &process{Cmd: cmd, t: t, lines: make(chan map[string]any, 100)}
	go func() {
		defer close(p.lines)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			line := map[string]any{}
			if json.Unmarshal(scanner.Bytes(), &line) != nil {
				line["msg"] = scanner.Text()
			}
			p.lines <- line
		}
	}()
	startLine := p.await("listening for clients")
	p.http, _ = startLine["http"].(string)
	return p, startLine
}

// await reads the log up to a message.
func (p *process) await(message string) map[string]any {
	p.t.Helper()
	late := time.After(endsWithin)
	for {
		select {
		case line, isOpen := <-p.lines:
			if !isOpen {
				p.t.Fatalf("the daemon exited without logging %q", message)
			}
			if line["msg"] == message {
				return line
			}
		case <-late:
			p.t.Fatalf("the daemon did not log %q within %s", message, endsWithin)
		}
	}
}

// endsWithin is far longer than a shutdown takes, even on a busy machine.
const endsWithin = 2 * time.Minute

// exit waits for the end of the process and returns the exit code and the rest of the log. If the
// process does not end, exit kills it and fails the test.
func (p *process) exit() (code int, log []map[string]any) {
	p.t.Helper()
	late := time.AfterFunc(endsWithin, func() {
		p.t.Errorf("the daemon with process ID %d did not exit within %s", p.Process.Pid, endsWithin)
		_ = p.Process.Kill()
	})
	defer late.Stop()
	for line := range p.lines {
		log = append(log, line)
	}
	_ = p.Wait() // the exit code has the result
	return p.ProcessState.ExitCode(), log
}

// sockets returns a directory with a path short enough for sockets.
func sockets(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func startAgent(t *testing.T, network, address string) *standin.Agent {
	t.Helper()
	agent, err := standin.Start(standin.Config{Network: network, Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	return agent
}

// load publishes from several goroutines until stop is closed.
func load(t *testing.T, c *client.Client, stop chan struct{}) *sync.WaitGroup {
	var publishing sync.WaitGroup
	for g := range 3 {
		publishing.Go(func() {
			batch := make([]client.Snapshot, 10)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for j := range batch {
					batch[j] = client.Snapshot{
						Key: client.Key{
							Service: "shop", Operation: "op",
							Resource: fmt.Sprint("r", (i+j)%50), Kind: "server",
						},
						Duration: time.Duration(1+i%1000) * time.Microsecond, End: time.Now(), Error: j == g,
					}
				}
				c.Publish(batch)
				if i%20 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	return &publishing
}

// TestStop_UnderLoad sends SIGTERM under load, with both kinds of agent addresses. Every span accepted
// by the socket must be at the fake agent, and the last log line must have balanced accounting.
func TestStop_UnderLoad(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		t.Run(network, func(t *testing.T) {
			dir := sockets(t)
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(dir, "agent")
			}
			agent := startAgent(t, network, address)
			socket := filepath.Join(dir, "s")
			daemon := daemonProcess(t, agent.URL(), socket, "--shutdown-grace", "30s", "--drainers",
				"fixed:2", "--ring-slots", "65536")
			var clients []*client.Client
			stop := make(chan struct{})
			var loads []*sync.WaitGroup
			for i := range 3 {
				c, err := client.Open(client.Config{
					Socket: socket, MaxAge: 5 * time.Millisecond,
					Origin: client.Origin{Service: fmt.Sprint("svc", i)},
				})
				if err != nil {
					t.Fatal(err)
				}
				clients = append(clients, c)
				loads = append(loads, load(t, c, stop))
			}
			for sent := uint64(0); sent < 20_000; time.Sleep(time.Millisecond) {
				sent = 0
				for _, c := range clients {
					sent += c.Stats().Sent
				}
			}
			if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			code, log := daemon.exit()
			close(stop)
			sent := uint64(0)
			for i, c := range clients {
				loads[i].Wait()
				sent += c.Stats().Sent
			}
			last := log[len(log)-1]
			totals := agent.Totals()
			if code != 0 || last["msg"] != "stopped" || last["balanced"] != true || last["dropped"] != 0.0 ||
				last["flushed"] != float64(sent) {
				t.Errorf("exit code %d, last line %v; %d spans were accepted", code, last, sent)
			}
			if totals.Hits != sent || len(totals.Problems) != 0 {
				t.Errorf("the agent counted %d of %d spans; problems: %v", totals.Hits, sent, totals.Problems)
			}
			if _, err := os.Lstat(socket); err == nil {
				t.Error("the socket is still there")
			}
		})
	}
}

// TestStop_WithoutAgent checks that undelivered spans are counted in the last log line.
func TestStop_WithoutAgent(t *testing.T) {
	dir := sockets(t)
	socket := filepath.Join(dir, "s")
	daemon := daemonProcess(t, "unix://"+filepath.Join(dir, "unreachable"), socket)
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
	if err := daemon.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code, log := daemon.exit()
	last := log[len(log)-1]
	if code != 0 || last["received"] != 1.0 || last["unsent"] != 1.0 || last["balanced"] != true ||
		last["level"] != "WARN" || last["lost"] != 1.0 {
		t.Errorf("exit code %d, last line %v", code, last)
	}
}

// TestStop_SecondSignal interrupts a shutdown that waits for a hanging agent.
func TestStop_SecondSignal(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon := daemonProcess(t, agent.URL(), socket, "--shutdown-grace", "10m")
	agent.SetFault(func(*http.Request) standin.Fault { return standin.Fault{Kind: standin.Hang} })
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{Service: "a", Operation: "b", Resource: "c"},
		End: time.Now(),
	}})
	eventually.True(t, "the daemon has the span", func() bool {
		return metric(daemon.get("/metrics"), "spanstatsd_spans_received_total") == 1
	})
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		if err := daemon.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if sig == syscall.SIGTERM {
			daemon.await("stopping")
		}
	}
	code, log := daemon.exit()
	closing, closeEarly := context.WithCancel(t.Context())
	closeEarly() // no connection will arrive
	_ = c.Close(closing)
	if last := log[len(log)-1]; code != 1 || !strings.Contains(fmt.Sprint(last["msg"]), "second signal") {
		t.Errorf("exit code %d, log %v", code, log)
	}
}

// TestSecondSignal_NothingToDeliver sends a second signal to a daemon that has nothing left to deliver: immediately after the
// first, and while an unfinished HTTP request holds up the end of a stop that is otherwise complete.
func TestSecondSignal_NothingToDeliver(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	for _, isStopped := range []bool{false, true, false, false, false} {
		daemon := daemonProcess(t, agent.URL(), socket, "--shutdown-grace", "10m")
		conn, err := net.Dial("tcp", daemon.http)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\n\r\nGET /livez HT"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 10)); err != nil { // the server has started to read
			t.Fatal(err)
		}
		signal := func() {
			if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
		if signal(); isStopped {
			if last := daemon.await("stopped"); last["level"] != "INFO" || last["lost"] != 0.0 {
				t.Errorf("the last line is %v", last)
			}
		} else {
			daemon.await("stopping")
		}
		signal()
		code, log := daemon.exit()
		conn.Close()
		for _, line := range log {
			if code != 0 || strings.Contains(fmt.Sprint(line["msg"]), "second signal") {
				t.Fatalf("after the stop %v: exit code %d, log %v", isStopped, code, log)
			}
		}
		crashFiles, err := filepath.Glob(filepath.Join(dir, "*running*"))
		if code != 0 || err != nil || len(crashFiles) > 0 {
			t.Errorf("after the stop %v: exit code %d; crash files for the next daemon: %v, %v", isStopped, code, crashFiles, err)
		}
	}
}

// TestSocket_InUseOrStale checks that a second daemon refuses a socket in use and replaces a stale one.
func TestSocket_InUseOrStale(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	first := daemonProcess(t, agent.URL(), socket)
	out, err := program(t, "run", "--socket", socket, "--http-addr", "127.0.0.1:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another process listens") {
		t.Errorf("a second daemon: %v, %s", err, out)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.exit()
	second := daemonProcess(t, agent.URL(), socket)
	if died := metric(second.get("/metrics"), "spanstatsd_crashed_predecessors"); died != 1 {
		t.Errorf("after a kill, the second daemon reports %g crashed predecessors", died)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, _ := second.exit(); code != 0 {
		t.Errorf("the second daemon exited with code %d", code)
	}
	third := daemonProcess(t, agent.URL(), socket)
	if died := metric(third.get("/metrics"), "spanstatsd_crashed_predecessors"); died != 0 {
		t.Errorf("after a graceful shutdown, the third daemon reports %g crashed predecessors", died)
	}
}

// TestStart_NamesAllAddressesInUse checks that a daemon which can't start names each address that is in use, not
// only the first one.
func TestStart_NamesAllAddressesInUse(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemonProcess(t, agent.URL(), socket)
	args := []string{"run", "--socket", socket, "--agent-url", agent.URL()}
	inUse := []string{socket}
	for _, flag := range []string{"--http-addr", "--prometheus-addr", "--otlp-addr", "--zipkin-addr", "--apm-addr"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { listener.Close() })
		args = append(args, flag, listener.Addr().String())
		inUse = append(inUse, listener.Addr().String())
	}
	out, err := program(t, append(args, "--prometheus")...).CombinedOutput()
	if err == nil {
		t.Fatalf("the daemon started although its addresses are in use: %s", out)
	}
	for _, address := range inUse {
		if !strings.Contains(string(out), address) {
			t.Errorf("the output does not report that %s is in use: %s", address, out)
		}
	}
}
