package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// podBytes is the memory of a small pod, which is that of its control group.
const podBytes = 64 << 20

// pod is a control group in which daemons are killed for want of memory: something else takes all of it.
type pod struct{ dir string }

// newPod makes one, where this process may.
func newPod() (*pod, error) {
	root, limit := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	if _, err := os.Stat(root); err != nil {
		root, limit = "/sys/fs/cgroup", "memory.max"
	}
	dir, err := os.MkdirTemp(root, "kills-")
	if err != nil {
		return nil, fmt.Errorf("make control group: %w", err)
	}
	p := &pod{dir}
	if err := os.WriteFile(filepath.Join(dir, limit), []byte(strconv.Itoa(podBytes)), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("limit memory of control group: %w", err), p.close())
	}
	return p, nil
}

// in has a command run in the control group.
func (p *pod) in(c *exec.Cmd) *exec.Cmd {
	if p == nil {
		return c
	}
	const enter = `echo $$ > "$0" && exec "$@"`
	args := append([]string{"-c", enter, filepath.Join(p.dir, "cgroup.procs")}, c.Args...)
	return exec.Command("sh", args...)
}

// starve takes memory until the kernel has killed the process, and then gives it back.
func (p *pod) starve(victim *os.Process, ended <-chan struct{}) error {
	first := fmt.Sprintf("/proc/%d/oom_score_adj", victim.Pid)
	if err := os.WriteFile(first, []byte("1000"), 0o600); err != nil {
		return fmt.Errorf("choose who is killed for want of memory: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	eater := p.in(exec.Command(self))
	eater.Env = append(os.Environ(), eaterVariable+"=1")
	if err := eater.Start(); err != nil {
		return fmt.Errorf("take memory: %w", err)
	}
	defer func() { _ = errors.Join(eater.Process.Kill(), eater.Wait()) }()
	select {
	case <-ended:
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("the kernel kills nobody for want of memory")
	}
}

func (p *pod) close() error {
	for range 100 { // what has ended in it may not be gone yet
		if err := os.Remove(p.dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return os.Remove(p.dir)
}

// eaterVariable has a process of this program take memory and do nothing else.
const eaterVariable = "KILLS_EATER"

// eat takes memory until somebody kills it.
func eat() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0o600) // it is to be the last
	var all []string
	for range podBytes >> 20 {
		all = append(all, strings.Repeat("x", 1<<20))
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(time.Minute)
	_ = all
}
