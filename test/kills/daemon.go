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

// daemon is a place where one process follows the other: each is a life. Whoever starts and ends them is one
// goroutine.
type daemon struct {
	name, program, dir string
	tagged             string // the program that can kill itself
	killAt             int    // the next one does, behind that store; 0: never
	flags              []string
	doors              []string
	pod                *pod // nil: the machine
	log                io.Writer
	ready              []time.Duration // from each start until tracers may connect

	mu      sync.Mutex
	process *process // of this life
	life    int
	losses  []loss
	unknown int    // daemons of which nobody knows what they had
	gaveUp  uint64 // spans, of daemons that ended in order: dropped or not delivered
}

func (d *daemon) socket() string { return filepath.Join(d.dir, "s") }

// door is the socket of an HTTP door of one life, so that no request comes to another one.
func (d *daemon) door(name string, life int) string {
	return filepath.Join(d.dir, fmt.Sprintf("%s%d", name, life))
}

// start runs the next process.
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
			d.hear(life, line, time.Since(begun))
		})
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.process, d.life = p, life
	return nil
}

// ownAddress is one on loopback that no other life has, of any episode: who still asks a dead
// daemon would otherwise, once in some thousand lives, scrape the one that has its port now, and
// that would take it for read.
func ownAddress() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// hear reads a line of the log, so long after the start.
func (d *daemon) hear(life int, line []byte, after time.Duration) {
	var said struct {
		Msg             string
		Dropped, Unsent uint64
		Unknown         int
		Names           []string
	}
	_ = json.Unmarshal(line, &said) // what is none says nothing
	var rest map[string]any
	_ = json.Unmarshal(line, &rest)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch said.Msg {
	case "stopped", "stopped: another destination":
		d.gaveUp += said.Dropped + said.Unsent
	case "listening for tracers":
		d.ready = append(d.ready, after)
	}
	if strings.HasPrefix(said.Msg, "the daemon before this one was killed") {
		d.unknown += said.Unknown
		// Who is killed within a second of saying it leaves that to the next, which says the same again.
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

// page is the present life, and where its page is.
func (d *daemon) page() (life int, address string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return d.life, ""
	}
	return d.life, d.process.page()
}

// kill ends the process with SIGKILL, or has the kernel do so.
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

// stop ends the process in order.
func (d *daemon) stop() error {
	wasKilled, err := d.process.end(syscall.SIGTERM)
	if wasKilled {
		err = d.process.failed("was killed, and was to end in order")
	}
	return err
}

// metrics are the values of a metric, by the rest of its line.
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

// close ends a process that nobody has ended.
func (d *daemon) close() {
	if d.process != nil {
		_, _ = d.process.end(syscall.SIGKILL)
	}
}
