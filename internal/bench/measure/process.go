package measure

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

// CPU is the processor time of all threads of a process.
type CPU struct {
	All    time.Duration // to the nanosecond
	System time.Duration // the part of it in the kernel, to its clock tick
}

// Minus is what was used since an earlier reading.
func (c CPU) Minus(earlier CPU) CPU { return CPU{c.All - earlier.All, c.System - earlier.System} }

// Plus adds what was used between two other readings.
func (c CPU) Plus(more CPU) CPU { return CPU{c.All + more.All, c.System + more.System} }

// clockTick is the unit of /proc/PID/stat, the same on every Linux that Go runs on.
const clockTick = time.Second / 100

// CPUOf reads a process's account.
func CPUOf(pid int) (CPU, error) {
	var now unix.Timespec
	// The id of the clock that counts a process's CPU time: see clock_getcpuclockid.
	if err := unix.ClockGettime(int32(^pid)<<3|2, &now); err != nil {
		return CPU{}, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return CPU{}, fmt.Errorf("read accounts of process: %w", err)
	}
	// Behind the name, which may hold anything: state is the third field, system
	// time the fifteenth.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return CPU{}, fmt.Errorf("read accounts of process %d: %q is no stat", pid, stat)
	}
	ticks, err := strconv.ParseInt(string(fields[12]), 10, 64)
	if err != nil {
		return CPU{}, fmt.Errorf("read accounts of process %d: %w", pid, err)
	}
	return CPU{time.Duration(now.Nano()), time.Duration(ticks) * clockTick}, nil
}

// OwnCPU is the processor time of this process. Reading it allocates nothing that a
// measurement would count.
func OwnCPU() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// Memory is a process's resident set, in bytes.
type Memory struct{ Resident, Peak uint64 }

// MemoryOf reads it.
func MemoryOf(pid int) (Memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read memory of process: %w", err)
	}
	var m Memory
	for line := range bytes.Lines(status) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		kilobytes, _ := strconv.ParseUint(string(fields[1]), 10, 64)
		switch string(fields[0]) {
		case "VmRSS:":
			m.Resident = kilobytes << 10
		case "VmHWM:":
			m.Peak = kilobytes << 10
		}
	}
	if m.Peak == 0 {
		return Memory{}, fmt.Errorf("read memory of process %d: its status says nothing of it", pid)
	}
	return m, nil
}

// Start starts a process on the first of this machine's processors: so many, or all
// where the number is 0. It inherits them from the thread that it is started by.
func Start(cmd *exec.Cmd, cpus int) error {
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
