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
	process, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, fmt.Errorf("read memory: %w", err)
	}
	status, err := process.NewStatus()
	if err == nil && status.VmHWM == 0 {
		err = errors.New("its status says nothing of it")
	}
	if err != nil {
		return Memory{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	return Memory{Resident: status.VmRSS, Peak: status.VmHWM}, nil
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
