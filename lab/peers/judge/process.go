package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// process is a running tool.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
	peakKiB atomic.Int64 // highest resident memory so far
}

// startProcess starts a tool in its control group. Its output is appended to a file.
func startProcess(dir string, group *controlGroup, environ []string, command ...string) (*process, error) {
	command = group.enter(command)
	p := &process{
		command: exec.Command(command[0], command[1:]...), ended: make(chan struct{}),
		log: filepath.Join(dir, "log"),
	}
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer output.Close() // inherited by the process
	p.command.Dir, p.command.Env = dir, append(os.Environ(), environ...)
	p.command.Stdout, p.command.Stderr = output, output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no tool outlives the judge
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	go func() {
		_ = p.command.Wait() // a killed process is no error here
		close(p.ended)
	}()
	return p, nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// sample updates the peak memory.
func (p *process) sample() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return // it has ended
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	text, _, _ := strings.Cut(rest, "kB")
	if kib, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
		p.peakKiB.Store(max(p.peakKiB.Load(), kib))
	}
}

// cpu returns the CPU time of an ended process.
func (p *process) cpu() time.Duration {
	<-p.ended
	return p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime()
}

// stopTimeout is Kubernetes' default termination grace period.
const stopTimeout = 30 * time.Second

// stop sends SIGTERM, and SIGKILL if the process does not exit in time.
func (p *process) stop() {
	p.sample()
	_ = p.command.Process.Signal(syscall.SIGTERM) // fails only if the process has ended
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

func (p *process) kill() {
	p.sample()
	_ = p.command.Process.Kill() // fails only if the process has ended
	<-p.ended
}

// lastLines returns the end of the log.
func (p *process) lastLines() []byte {
	const most = 4000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-most):])
}
