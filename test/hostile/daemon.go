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

// target is where a daemon takes what. Hostile processes are told so as JSON.
type target struct {
	Spans, APM, OTLP         string // paths of sockets
	APMAddr, OTLPAddr, Page  string // host:port
	ReadsAsDatadog, HasAgent bool
}

// daemon is a place where one process follows the other.
type daemon struct {
	name       string
	program    string
	flags      []string
	at         target
	log        io.Writer
	files      []*os.File // sockets that a service manager would keep
	hasMetrics bool       // it sends metrics of OTLP too

	mu        sync.Mutex
	process   *exec.Cmd
	last      string // line of the log, up to the books
	ended     chan struct{}
	isSeen    bool   // it is looked at each second
	flushed   uint64 // by the processes before
	ambiguous uint64 // told as unsent by them
	dropped   uint64
	peak      int64  // resident bytes; of who looks
	givenUp   uint64 // spans, when it was looked at last; the same
	starts    int
}

// listen makes all sockets but the page's, to be given to one process after the other.
func (d *daemon) listen() error {
	for _, address := range []string{d.at.Spans, d.at.APM, d.at.OTLP, d.at.APMAddr, d.at.OTLPAddr} {
		listener, err := net.Listen(networkOf(address), address)
		if err != nil {
			return fmt.Errorf("keep a socket: %w", err)
		}
		if unix, is := listener.(*net.UnixListener); is {
			unix.SetUnlinkOnClose(false)
		}
		file, err := listener.(interface{ File() (*os.File, error) }).File()
		if err != nil {
			return fmt.Errorf("keep a socket: %w", err)
		}
		d.files = append(d.files, file)
		listener.Close() // the file is another descriptor of it
	}
	return nil
}

// start runs a process and waits until it listens.
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
		said := sync.OnceFunc(func() { close(listens) })
		for lines.Scan() {
			fmt.Fprintf(d.log, "%s %s\n", d.name, lines.Bytes())
			d.mu.Lock()
			if !strings.Contains(d.last, `"msg":"stopped"`) { // what was held back by rate may follow
				d.last = lines.Text()
			}
			d.mu.Unlock()
			if strings.Contains(lines.Text(), `"listening for tracers"`) {
				said()
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
	d.isSeen = true
	d.mu.Unlock()
	return nil
}

// stop ends the process in order and notes its books.
func (d *daemon) stop() error {
	d.mu.Lock()
	d.isSeen = false
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
	var books struct {
		Msg                      string
		Balanced                 bool
		Flushed, Dropped, Unsent uint64
		Received, Aggregated     uint64
		UnsentBy                 map[string]uint64 `json:"unsent_by_reason"`
	}
	_ = json.Unmarshal([]byte(d.last), &books)
	d.flushed += books.Flushed
	d.dropped += books.Dropped
	d.ambiguous += books.Unsent // else the agent has not counted them, and the ledger tells
	if err != nil || books.Msg != "stopped" || !books.Balanced {
		return fmt.Errorf("daemon %s ended with %v: %s", d.name, err, d.last)
	}
	return nil
}

// kill ends what is left when the soak fails.
func (d *daemon) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		_ = d.process.Process.Kill()
	}
}

// signal sends one to the process.
func (d *daemon) signal(s syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.process.Process.Signal(s) // an end is noticed by who looks at it
}

// pid is that of the process, where it is looked at.
func (d *daemon) pid() (pid int, isSeen bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.process.Process.Pid, d.isSeen
}

// dump writes what the daemon's goroutines do into its log.
func (d *daemon) dump() {
	answer, err := looking.Get("http://" + d.at.Page + "/debug/pprof/goroutine?debug=2")
	if err != nil {
		return
	}
	defer answer.Body.Close()
	_, _ = io.Copy(d.log, answer.Body) // it is for a person
}

var looking = &http.Client{Timeout: 20 * time.Second}

// status is what the daemon says of itself.
func (d *daemon) status() (*status.Status, error) {
	answer, err := looking.Get("http://" + d.at.Page + "/status")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var s status.Status
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		return nil, fmt.Errorf("read /status: %w", err)
	}
	return &s, nil
}
