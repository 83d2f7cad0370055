package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process on the bill.
type process struct {
	name    string
	command *exec.Cmd
	log     string // file with its output
	ended   chan struct{}
}

func start(dir, name string, env []string, command ...string) (*process, error) {
	p := &process{
		name: name, command: exec.Command(command[0], command[1:]...),
		log: filepath.Join(dir, name+".log"), ended: make(chan struct{}),
	}
	output, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("make log: %w", err)
	}
	defer output.Close() // inherited by the process
	p.command.Env, p.command.Stdout, p.command.Stderr = env, output, output
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no process outlives the benchmark
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.command.Wait() // ended by a signal as intended; errors show in the accounting
		close(p.ended)
	}()
	return p, nil
}

// alive returns an error with the process's output if the process has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		output, err := os.ReadFile(p.log)
		return fmt.Errorf("run %s: process exited: %s (%v)", p.name, lastLines(output), err)
	default:
		return nil
	}
}

func lastLines(output []byte) []byte {
	const most = 2000
	return bytes.TrimSpace(output[max(0, len(output)-most):])
}

// stop shuts it down gracefully.
func (p *process) stop() error {
	if err := p.alive(); err != nil {
		return err
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(time.Minute):
		p.kill()
		return fmt.Errorf("stop %s: process did not exit within a minute", p.name)
	}
}

// kill ends it in any case.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// cpu returns the processor time of all threads, including ended ones.
func (p *process) cpu() (time.Duration, error) {
	// The clock ID of another process in the kernel: the inverted process ID, shifted, and the clock
	// type CPUCLOCK_SCHED.
	clock := int32(^p.command.Process.Pid)<<3 | 2
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0, fmt.Errorf("read clock of %s: %w", p.name, err)
	}
	return time.Duration(t.Nano()), nil
}

// peak returns the peak memory in MiB.
func (p *process) peak() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", p.name, err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	rest, _, _ = strings.Cut(rest, "kB")
	kib, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", p.name, err)
	}
	return kib / 1024, nil
}
