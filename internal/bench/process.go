package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// cpu is what the threads of a process have used, by the kernel's accounting.
type cpu struct {
	all    time.Duration // to the nanosecond
	system time.Duration // the part of it in the kernel, to its clock tick
}

func (c cpu) minus(earlier cpu) cpu { return cpu{c.all - earlier.all, c.system - earlier.system} }

func (c cpu) plus(more cpu) cpu { return cpu{c.all + more.all, c.system + more.system} }

// clockTick is the unit of /proc/PID/stat, the same on every Linux that Go runs on.
const clockTick = time.Second / 100

// cpuOf reads another process's accounts.
func cpuOf(pid int) (cpu, error) {
	var now unix.Timespec
	// The id of the clock that counts a process's CPU time: see clock_getcpuclockid.
	if err := unix.ClockGettime(int32(^pid)<<3|2, &now); err != nil {
		return cpu{}, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return cpu{}, fmt.Errorf("read accounts of process: %w", err)
	}
	// Behind the name, which may hold anything: state is the third field, system
	// time the fifteenth.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return cpu{}, fmt.Errorf("read accounts of process %d: %q is no stat", pid, stat)
	}
	ticks, err := strconv.ParseInt(string(fields[12]), 10, 64)
	if err != nil {
		return cpu{}, fmt.Errorf("read accounts of process %d: %w", pid, err)
	}
	return cpu{time.Duration(now.Nano()), time.Duration(ticks) * clockTick}, nil
}

// ownCPU is this process's.
func ownCPU() (time.Duration, error) {
	c, err := cpuOf(os.Getpid())
	return c.all, err
}

// memory is a process's resident set, in bytes.
type memory struct{ resident, peak uint64 }

func memoryOf(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read memory of process: %w", err)
	}
	var m memory
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseUint(string(fields[1]), 10, 64)
		switch string(fields[0]) {
		case "VmRSS:":
			m.resident = kilobytes << 10
		case "VmHWM:":
			m.peak = kilobytes << 10
		}
	}
	if m.peak == 0 {
		return memory{}, fmt.Errorf("read memory of process %d: its status says nothing of it", pid)
	}
	return m, nil
}

// start starts a process on the first of this machine's processors: so many, or
// all. It inherits them from the thread that it is started by.
func start(cmd *exec.Cmd, cpus int) error {
	if cpus == 0 {
		return cmd.Start()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read processors: %w", err)
	}
	for cpu := 0; first.Count() < cpus; cpu++ {
		if before.IsSet(cpu) {
			first.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		return fmt.Errorf("choose processors: %w", err)
	}
	err := cmd.Start()
	if restored := unix.SchedSetaffinity(0, &before); restored != nil {
		return errors.Join(err, fmt.Errorf("give processors back: %w", restored))
	}
	return err
}
