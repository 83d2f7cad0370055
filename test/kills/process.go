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

// process is one daemon, from its start to its end.
type process struct {
	*exec.Cmd
	name    string
	listens chan struct{} // closed when tracers may connect
	ended   chan struct{} // closed when it has ended

	mu      sync.Mutex
	address string // of its page
	last    string // line of its log
}

// startProcess starts a daemon. With killAt it kills itself behind that store to its running file. Each line
// of its log is heard.
func startProcess(cmd *exec.Cmd, name string, killAt int, heard func(line []byte)) (*process, error) {
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
			heard(lines.Bytes())
			p.hear(lines.Bytes())
		}
		_ = p.Wait() // ProcessState says it
		close(p.ended)
	}()
	return p, nil
}

// hear reads a line of its log.
func (p *process) hear(line []byte) {
	var said struct{ Msg, HTTP string }
	_ = json.Unmarshal(line, &said) // what is none says nothing
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = string(line)
	if said.Msg == "listening for tracers" {
		p.address = said.HTTP
		close(p.listens)
	}
}

// wait waits until it listens.
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

// end sends signals, waits until it has ended, and says whether by SIGKILL.
func (p *process) end(signals ...syscall.Signal) (wasKilled bool, err error) {
	for _, s := range signals {
		_ = p.Process.Signal(s) // it may have ended by itself
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

func (p *process) hasListened() bool { return isClosed(p.listens) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// page is where its page is, "" before it is known.
func (p *process) page() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// status is what it says of itself.
func (p *process) status() (*status.Status, error) {
	address := p.page()
	if address == "" {
		return nil, errors.New("it does not listen")
	}
	answer, err := http.Get("http://" + address + "/status")
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
