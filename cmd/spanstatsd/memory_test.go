//go:build !race

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

const smallest = 64 << 20 // what a daemon with its defaults must live in

// TestSmallMemoryAgrees floods a daemon of 64 MiB with keys that are all new: it
// lives, its books balance, and the agent has what was accepted. (The race
// detector takes several times as much.)
func TestSmallMemoryAgrees(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	cmd := program(t, "run", "--socket", socket, "--agent-url", "unix://"+filepath.Join(dir, "agent"),
		"--http-addr", "127.0.0.1:0", "--log-format", "json")
	source := confine(t, cmd)
	daemon, said := listening(t, cmd)
	if at := fmt.Sprint(said["memory_at_most"]); !regexp.MustCompile(`^[0-9]{2} MiB$`).MatchString(at) {
		t.Errorf("it says that it may use %s", at)
	}
	flood := program(t, "bench", "--daemon", "http://"+daemon.http, "--socket", socket,
		"--workload", "adversarial", "--producers", "2", "--connections", "20", "--origins", "10", "--spans", "3000000", "--for", "60s")
	if out, err := flood.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	peak := peakResident(t, daemon.Process.Pid)
	t.Logf("%s: at most %d MiB resident", source, peak>>20)
	if peak > smallest {
		t.Errorf("%d bytes were resident", peak)
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	code, log := daemon.exit()
	last := log[len(log)-1]
	if code != 0 || last["balanced"] != true {
		t.Errorf("exit code %d, last line %v", code, last)
	}
	if hits := agent.Totals().Hits; float64(hits) != last["flushed"] || hits == 0 {
		t.Errorf("the agent has %d hits, the daemon's last line is %v", hits, last)
	}
}

// confine has a command run in a control group of 64 MiB, of either version, where
// the test may make one, and else with GOMEMLIMIT. It says which.
func confine(t *testing.T, cmd *exec.Cmd) string {
	name := fmt.Sprintf("spanstatsd-test-%d", os.Getpid())
	for _, version := range []struct{ mount, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"},
	} {
		group := filepath.Join(version.mount, name)
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) }) // it is empty once the daemon has ended
		if os.WriteFile(filepath.Join(group, version.limit), strconv.AppendInt(nil, smallest, 10), 0o644) != nil {
			continue // a directory, but no controller in it
		}
		cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		return "a control group"
	}
	cmd.Env = append(cmd.Env, fmt.Sprintf("GOMEMLIMIT=%d", smallest))
	return "GOMEMLIMIT"
}

// peakResident is the most that a process ever had resident.
func peakResident(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	kibibytes, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
