package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// process is one daemon process.
type process struct {
	*exec.Cmd
	name    string
	listens chan struct{} // closed when clients can connect
	ended   chan struct{} // closed when the process has ended

	mu      sync.Mutex
	address string // address of its status page
	last    string // last line of its log
}

// startProcess starts a daemon and calls onLine for each line of its log. If killAt is positive, the
// daemon kills itself after that many stores to its recovery file.
func startProcess(cmd *exec.Cmd, name string, killAt int, onLine func(line []byte)) (*process, error) {
	p := &process{Cmd: cmd, name: name, listens: make(chan struct{}), ended: make(chan struct{})}
	p.Env = append(os.Environ(), fmt.Sprint("KILL_AT_STORE=", killAt))
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := p.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	go func() {
		lines := bufio.NewScanner(stderr)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			onLine(lines.Bytes())
			p.readLogLine(lines.Bytes())
		}
		_ = p.Wait() // ProcessState has the result
		close(p.ended)
	}()
	return p, nil
}

// readLogLine handles a line of the daemon's log.
func (p *process) readLogLine(line []byte) {
	var entry struct{ Msg, HTTP string }
	_ = json.Unmarshal(line, &entry) // lines that are not JSON are ignored
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = string(line)
	if entry.Msg == "listening for clients" {
		p.address = entry.HTTP
		close(p.listens)
	}
}

// wait waits until the daemon listens.
func (p *process) wait() error {
	select {
	case <-p.listens:
		return nil
	case <-p.ended:
		return p.failed("ended before it listened")
	case <-time.After(time.Minute):
		return p.failed("does not listen within a minute")
	}
}

// end sends signals and waits until the process has ended. It reports whether SIGKILL ended the
// process.
func (p *process) end(signals ...syscall.Signal) (wasKilled bool, err error) {
	for _, s := range signals {
		_ = p.Process.Signal(s) // fails if the process has already ended
	}
	select {
	case <-p.ended:
	case <-time.After(2 * time.Minute):
		_ = p.Process.Signal(syscall.SIGQUIT)
		return false, p.failed("does not end within two minutes")
	}
	switch status := p.ProcessState.Sys().(syscall.WaitStatus); {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		return true, nil
	case status.ExitStatus() == 0:
		return false, nil
	}
	return false, p.failed("ended by itself")
}

func (p *process) failed(how string) error {
	return fmt.Errorf("daemon %s %s (%v): %s", p.name, how, p.ProcessState, p.lastLine())
}

func (p *process) lastLine() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

func (p *process) hasEnded() bool { return isClosed(p.ended) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// statusAddress returns the address of the status page, or "" if it is not known yet.
func (p *process) statusAddress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// status returns the daemon's status.
func (p *process) status() (*status.Status, error) {
	address := p.statusAddress()
	if address == "" {
		return nil, errors.New("read /status: the daemon does not listen")
	}
	response, err := http.Get("http://" + address + "/status")
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
