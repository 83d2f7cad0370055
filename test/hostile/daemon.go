package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// target holds the addresses of a daemon. Hostile processes receive it as JSON.
type target struct {
	Spans, APM, OTLP              string // socket paths
	APMAddr, OTLPAddr, StatusAddr string // host:port
}

// daemon is a sequence of daemon processes with the same addresses.
type daemon struct {
	name       string
	program    string
	flags      []string
	target     target
	log        io.Writer
	files      []*os.File // sockets passed to each process, as by a service manager
	hasMetrics bool       // the daemon also exports OTLP metrics

	mu        sync.Mutex
	process   *exec.Cmd
	last      string // last line of the log before the final accounting
	ended     chan struct{}
	isWatched bool   // inspected every second
	flushed   uint64 // spans flushed by previous processes
	ambiguous uint64 // spans reported as unsent by previous processes
	dropped   uint64
	peak      int64  // peak resident bytes; owned by watch
	abandoned uint64 // spans abandoned up to the last inspection; owned by watch
	starts    int
}

// listen opens all sockets except that of the status page. They are passed to each process in turn.
func (d *daemon) listen() error {
	for _, address := range []string{d.target.Spans, d.target.APM, d.target.OTLP, d.target.APMAddr, d.target.OTLPAddr} {
		listener, err := net.Listen(networkOf(address), address)
		if err != nil {
			return fmt.Errorf("open socket: %w", err)
		}
		if unix, is := listener.(*net.UnixListener); is {
			unix.SetUnlinkOnClose(false)
		}
		file, err := listener.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			return fmt.Errorf("open socket: %w", err)
		}
		d.files = append(d.files, file)
		listener.Close() // the file is a duplicate descriptor
	}
	return nil
}

// start starts a process and waits until it listens.
func (d *daemon) start() error {
	cmd := exec.Command(d.program, d.flags...)
	cmd.Env = append(os.Environ(), "GOMEMLIMIT="+memoryLimit)
	if len(d.files) > 0 {
		cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`}, cmd.Args...)...)
		cmd.Env = append(os.Environ(), "GOMEMLIMIT="+memoryLimit, fmt.Sprint("LISTEN_FDS=", len(d.files)))
		cmd.ExtraFiles = d.files
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start daemon: %w", err)
	}
	ended, listens := make(chan struct{}), make(chan struct{})
	d.mu.Lock()
	d.process, d.ended, d.last = cmd, ended, ""
	d.starts++
	d.mu.Unlock()
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		notify := sync.OnceFunc(func() { close(listens) })
		for lines.Scan() {
			fmt.Fprintf(d.log, "%s %s\n", d.name, lines.Bytes())
			d.mu.Lock()
			if !strings.Contains(d.last, `"msg":"stopped"`) { // rate-limited messages can follow
				d.last = lines.Text()
			}
			d.mu.Unlock()
			if strings.Contains(lines.Text(), `"listening for clients"`) {
				notify()
			}
		}
	}()
	select {
	case <-listens:
	case <-ended:
		return fmt.Errorf("daemon %s ended with %w: %s", d.name, cmd.Wait(), d.last)
	case <-time.After(time.Minute):
		return errors.New("daemon " + d.name + " does not listen within a minute")
	}
	d.mu.Lock()
	d.isWatched = true
	d.mu.Unlock()
	return nil
}

// stop shuts the process down gracefully and records its accounting.
func (d *daemon) stop() error {
	d.mu.Lock()
	d.isWatched = false
	process, ended := d.process, d.ended
	d.mu.Unlock()
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop daemon %s: %w", d.name, err)
	}
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = process.Process.Signal(syscall.SIGQUIT)
		return fmt.Errorf("daemon %s does not end within two minutes", d.name)
	}
	err := process.Wait()
	var accounting struct {
		Msg                      string
		Balanced                 bool
		Flushed, Dropped, Unsent uint64
		Received, Aggregated     uint64
		UnsentBy                 map[string]uint64 `json:"unsent_by_reason"`
	}
	_ = json.Unmarshal([]byte(d.last), &accounting)
	d.flushed += accounting.Flushed
	d.dropped += accounting.Dropped
	d.ambiguous += accounting.Unsent // if the agent has counted them, the ledger contains them
	if err != nil || accounting.Msg != "stopped" || !accounting.Balanced {
		return fmt.Errorf("daemon %s ended with %v: %s", d.name, err, d.last)
	}
	return nil
}

// kill kills the remaining process after a failed soak.
func (d *daemon) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		_ = d.process.Process.Kill()
	}
}

// signal sends a signal to the process.
func (d *daemon) signal(s syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.process.Process.Signal(s) // the goroutine that waits for the process notices its end
}

// pid returns the process ID, and whether the process is to be inspected.
func (d *daemon) pid() (pid int, isWatched bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.process.Process.Pid, d.isWatched
}

// dump writes a goroutine dump into the daemon's log.
func (d *daemon) dump() {
	response, err := statusClient.Get("http://" + d.target.StatusAddr + "/debug/pprof/goroutine?debug=2")
	if err != nil {
		return
	}
	defer response.Body.Close()
	_, _ = io.Copy(d.log, response.Body) // human-readable; errors don't matter
}

var statusClient = &http.Client{Timeout: 20 * time.Second}

// status returns the daemon's status.
func (d *daemon) status() (*status.Status, error) {
	response, err := statusClient.Get("http://" + d.target.StatusAddr + "/status")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var s status.Status
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("read /status: %w", err)
	}
	return &s, nil
}
