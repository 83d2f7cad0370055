package measure

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// CPU is the CPU time of all threads of a process.
type CPU struct {
	All    time.Duration // user and kernel time, with a resolution of nanoseconds
	System time.Duration // kernel time, with a resolution of one clock tick
}

// Minus returns the CPU time since an earlier reading.
func (c CPU) Minus(earlier CPU) CPU { return CPU{c.All - earlier.All, c.System - earlier.System} }

// Plus adds the CPU time between two other readings.
func (c CPU) Plus(more CPU) CPU { return CPU{c.All + more.All, c.System + more.System} }

// clockTick is the unit of /proc/PID/stat, the same on every Linux that Go supports.
const clockTick = time.Second / 100

// CPUOf returns the CPU time that a process has used.
func CPUOf(pid int) (CPU, error) {
	var now unix.Timespec
	// Clock ID of a process's CPU time; see clock_getcpuclockid.
	if err := unix.ClockGettime(int32(^pid)<<3|2, &now); err != nil {
		return CPU{}, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	process, err := procfs.NewProc(pid)
	if err != nil {
		return CPU{}, fmt.Errorf("read CPU time: %w", err)
	}
	stat, err := process.Stat()
	if err != nil {
		return CPU{}, fmt.Errorf("read CPU time of process %d: %w", pid, err)
	}
	return CPU{time.Duration(now.Nano()), time.Duration(stat.STime) * clockTick}, nil
}

// OwnCPU returns the CPU time of this process. It does not allocate memory, so it does not
// affect a measurement of allocations.
func OwnCPU() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

// Memory is the resident set size of a process and its peak, in bytes.
type Memory struct{ Resident, Peak uint64 }

// MemoryOf returns the memory use of a process.
func MemoryOf(pid int) (Memory, error) {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	status, err := process.NewStatus()
	if err == nil && status.VmHWM == 0 {
		err = errors.New("its status has no such field")
	}
	if err != nil {
		return Memory{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return Memory{Resident: status.VmRSS, Peak: status.VmHWM}, nil
}

// Start starts a process on the first cpus processors of this machine, or on all if cpus is 0.
// The process inherits the processor mask of the thread that starts it.
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
		return errors.Join(err, fmt.Errorf("restore processors: %w", restored))
	}
	return err
}
