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
	tagged             string // program that can kill itself
	killAt             int    // the next process kills itself after this number of stores to its recovery file; 0 means never
	flags              []string
	doors              []string
	pod                *pod // control group of the process; nil for none
	log                io.Writer
	ready              []time.Duration // time from start to readiness, per life

	mu      sync.Mutex
	process *process // process of the current life
	life    int
	losses  []loss
	unknown int    // daemons whose spans at the time of the kill are unknown
	gaveUp  uint64 // spans dropped or not delivered by daemons that shut down gracefully
}

func (d *daemon) socket() string { return filepath.Join(d.dir, "s") }

// door returns the socket path of an HTTP receiver in one life. Each life has its own path, so that no
// request reaches another process.
func (d *daemon) door(name string, life int) string {
	return filepath.Join(d.dir, fmt.Sprintf("%s%d", name, life))
}

// start starts the next process.
func (d *daemon) start() error {
	life := d.life + 1
	args := append([]string{
		"run", "--socket=" + d.socket(), "--http-addr=" + ownAddress(), "--flush-interval=1s",
		"--log-format=json",
		"--mask-names=never", "--buffer=block", "--shutdown-grace=20s",
	}, d.flags...)
	for _, name := range d.doors {
		args = append(args, fmt.Sprintf("--%s-socket=%s", name, d.door(name, life)))
	}
	program := d.program
	if d.killAt > 0 {
		program = d.tagged
	}
	begun := time.Now()
	command := d.pod.in(exec.Command(program, args...))
	p, err := startProcess(command, fmt.Sprint(d.name, " life ", life), d.killAt,
		func(line []byte) {
			fmt.Fprintf(d.log, "%s life %d %s\n", d.name, life, line)
			d.readLogLine(life, line, time.Since(begun))
		})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.process, d.life = p, life
	return nil
}

// ownAddress returns a loopback address that no other life of any episode uses. With a shared address,
// a scraper of a dead daemon would, once in several thousand lives, reach a daemon that reuses the
// port, and that daemon would assume that its statistics had been scraped.
func ownAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// readLogLine handles a line of the daemon's log, read at the given time after the start.
func (d *daemon) readLogLine(life int, line []byte, after time.Duration) {
	var said struct {
		Msg             string
		Dropped, Unsent uint64
		Unknown         int
		Names           []string
	}
	_ = json.Unmarshal(line, &said) // lines that are not JSON are ignored
	var rest map[string]any
	_ = json.Unmarshal(line, &rest)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch said.Msg {
	case "stopped", "stopped: additional destination":
		d.gaveUp += said.Dropped + said.Unsent
	case "listening for clients":
		d.ready = append(d.ready, after)
	}
	if strings.HasPrefix(said.Msg, "the daemon before this one was killed") {
		d.unknown += said.Unknown
		// A daemon that is killed within a second after its report leaves the report to its successor,
		// which repeats it.
		d.losses = slices.DeleteFunc(d.losses, func(l loss) bool {
			isSaid := func(name string) bool { return slices.Contains(said.Names, name) }
			return slices.ContainsFunc(l.names, isSaid)
		})
		for _, door := range []string{"socket", "apm", "otlp", "zipkin"} {
			number := func(name string) uint64 { n, _ := rest[door+name].(float64); return uint64(n) }
			d.losses = append(d.losses, loss{life, door, said.Names, number("_lost"), number("_ambiguous")})
		}
	}
}

// page returns the number of the current life and the address of its status page.
func (d *daemon) page() (life int, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return d.life, ""
	}
	return d.life, d.process.page()
}

// kill ends the process with SIGKILL, sent either by this program or by the OOM killer.
func (d *daemon) kill() error {
	if d.pod != nil {
		if err := d.pod.starve(d.process.Process, d.process.ended); err != nil {
			return err
		}
	}
	wasKilled, err := d.process.end(syscall.SIGKILL)
	if err == nil && !wasKilled {
		err = d.process.failed("ended in order, and was to be killed")
	}
	return err
}

// stop shuts the process down gracefully.
func (d *daemon) stop() error {
	wasKilled, err := d.process.end(syscall.SIGTERM)
	if wasKilled {
		err = d.process.failed("was killed, and was to end in order")
	}
	return err
}

// metrics returns the values of a metric, keyed by the labels.
func (d *daemon) metrics(name string) (map[string]uint64, error) {
	_, address := d.page()
	answer, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	all := map[string]uint64{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
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
