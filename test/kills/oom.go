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

// podBytes is the memory limit of the control group, that of a small pod.
const podBytes = 64 << 20

// pod is a control group in which daemons are killed because another process allocates all its memory.
type pod struct{ dir string }

// newPod creates a control group if this process has the permission.
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

// in returns a command that runs c in the control group.
func (p *pod) in(c *exec.Cmd) *exec.Cmd {
	if p == nil {
		return c
	}
	const enter = `echo $$ > "$0" && exec "$@"`
	args := append([]string{"-c", enter, filepath.Join(p.dir, "cgroup.procs")}, c.Args...)
	return exec.Command("sh", args...)
}

// oomKill allocates memory until the kernel has killed the victim, and then frees it.
func (p *pod) oomKill(victim *os.Process, ended <-chan struct{}) error {
	scoreFile := fmt.Sprintf("/proc/%d/oom_score_adj", victim.Pid)
	if err := os.WriteFile(scoreFile, []byte("1000"), 0o600); err != nil {
		return fmt.Errorf("choose the process for the OOM killer: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	hog := p.in(exec.Command(self))
	hog.Env = append(os.Environ(), hogVariable+"=1")
	if err := hog.Start(); err != nil {
		return fmt.Errorf("start process that allocates memory: %w", err)
	}
	defer func() { _ = errors.Join(hog.Process.Kill(), hog.Wait()) }()
	select {
	case <-ended:
		return nil
	case <-time.After(30 * time.Second):
		return errors.New("the kernel's OOM killer did not kill a process within 30 s")
	}
}

func (p *pod) close() error {
	for range 100 { // ended processes can remain in the group for a while
		if err := os.Remove(p.dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return os.Remove(p.dir)
}

// hogVariable is the environment variable that makes this program allocate memory and do nothing
// else.
const hogVariable = "KILLS_MEMORY_HOG"

// hogMemory allocates memory until the process is killed.
func hogMemory() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0o600) // the OOM killer chooses it last
	var all []string
	for range podBytes >> 20 {
		all = append(all, strings.Repeat("x", 1<<20))
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(time.Minute)
	_ = all
}
