package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// daemon is a sequence of daemon processes on the same socket. Each process is one life. A single
// goroutine starts and ends the processes.
type daemon struct {
	name, program, dir string
	selfKilling        string // daemon binary that can kill itself
	killAt             int    // the next process kills itself after this number of stores to its recovery file; 0 means never
	flags              []string
	receivers          []string
	pod                *pod // control group of the process; nil for none
	log                io.Writer
	ready              []time.Duration // time from start to readiness, per life

	mu        sync.Mutex
	process   *process // process of the current life
	life      int
	pids      map[int]int // life by process ID
	losses    []loss
	abandoned uint64 // spans dropped or not delivered by daemons that shut down gracefully
}

func (d *daemon) socket() string { return filepath.Join(d.dir, "s") }

// receiverSocket returns the socket path of an HTTP receiver in one life. Each life has its own path,
// so that no request reaches another process.
func (d *daemon) receiverSocket(name string, life int) string {
	return filepath.Join(d.dir, fmt.Sprintf("%s%d", name, life))
}

// start starts the next process.
func (d *daemon) start() error {
	life := d.life + 1
	args := append([]string{
		"run", "--socket=" + d.socket(), "--http-addr=" + uniqueAddress(), "--flush-interval=1s",
		"--log-format=json",
		"--mask-names=never", "--buffer=block", "--shutdown-grace=20s",
	}, d.flags...)
	for _, name := range d.receivers {
		args = append(args, fmt.Sprintf("--%s-socket=%s", name, d.receiverSocket(name, life)))
	}
	program := d.program
	if d.killAt > 0 {
		program = d.selfKilling
	}
	started := time.Now()
	command := d.pod.in(exec.Command(program, args...))
	p, err := startProcess(command, fmt.Sprint(d.name, " life ", life), d.killAt,
		func(line []byte) {
			fmt.Fprintf(d.log, "%s life %d %s\n", d.name, life, line)
			d.readLogLine(life, line, time.Since(started))
		})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pids == nil {
		d.pids = map[int]int{}
	}
	d.process, d.life, d.pids[p.Process.Pid] = p, life, life
	return nil
}

// uniqueAddress returns a loopback address that no other life of any episode uses. With a shared
// address, a scraper of a dead daemon would, once in several thousand lives, reach a daemon that
// reuses the port, and that daemon would assume that its statistics had been scraped.
func uniqueAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// readLogLine handles a line of the daemon's log, read sinceStart after the start.
func (d *daemon) readLogLine(life int, line []byte, sinceStart time.Duration) {
	var entry struct {
		Msg             string
		Dropped, Unsent uint64
		Names           []string
	}
	_ = json.Unmarshal(line, &entry) // lines that are not JSON are ignored
	var fields map[string]any
	_ = json.Unmarshal(line, &fields)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch entry.Msg {
	case "stopped", "stopped: additional destination":
		d.abandoned += entry.Dropped + entry.Unsent
	case "listening for clients":
		d.ready = append(d.ready, sinceStart)
	}
	isCrash := strings.HasPrefix(entry.Msg, "the previous daemon crashed")
	if !isCrash && !strings.HasPrefix(entry.Msg, "clients of a crashed daemon have not reconnected") {
		return
	}
	number := func(name string) uint64 { n, _ := fields[name].(float64); return uint64(n) }
	for _, name := range entry.Names {
		pid, _, _ := strings.Cut(name, "-") // the name of a recovery file begins with the process ID
		killed, _ := strconv.Atoi(pid)
		report := entry.Msg + " " + name
		// If a daemon is killed immediately after its report, its successor repeats the report.
		d.losses = slices.DeleteFunc(d.losses, func(l loss) bool { return l.line == report })
		for _, receiver := range []string{"socket", "apm", "otlp", "zipkin"} {
			d.losses = append(d.losses,
				loss{d.pids[killed], receiver, life, report, number(receiver + "_lost"), number(receiver + "_ambiguous")})
		}
	}
}

// reportedLosses returns the losses of a receiver that a life has reported.
func (d *daemon) reportedLosses(life int, receiver string) (all loss) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.losses {
		if l.by == life && l.receiver == receiver {
			all.lost += l.lost
			all.ambiguous += l.ambiguous
		}
	}
	return all
}

// statusAddress returns the number of the current life and the address of its status page.
func (d *daemon) statusAddress() (life int, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return d.life, ""
	}
	return d.life, d.process.statusAddress()
}

// kill ends the process with SIGKILL, sent either by this program or by the OOM killer.
func (d *daemon) kill() error {
	if d.pod != nil {
		if err := d.pod.oomKill(d.process.Process, d.process.ended); err != nil {
			return err
		}
	}
	wasKilled, err := d.process.end(syscall.SIGKILL)
	if err == nil && !wasKilled {
		err = d.process.failed("ended gracefully instead of being killed")
	}
	return err
}

// stop shuts the process down gracefully.
func (d *daemon) stop() error {
	wasKilled, err := d.process.end(syscall.SIGTERM)
	if wasKilled {
		err = d.process.failed("was killed instead of ending gracefully")
	}
	return err
}

// metrics returns the values of a metric, keyed by the labels.
func (d *daemon) metrics(name string) (map[string]uint64, error) {
	_, address := d.statusAddress()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	all := map[string]uint64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if labels, ok := strings.CutPrefix(lines.Text(), name); ok {
			at := strings.LastIndexByte(labels, ' ')
			value, _ := strconv.ParseFloat(labels[at+1:], 64)
			all[labels[:at]] = uint64(value)
		}
	}
	return all, nil
}

// close kills the process if it is still running.
func (d *daemon) close() {
	if d.process != nil {
		_, _ = d.process.end(syscall.SIGKILL)
	}
}
