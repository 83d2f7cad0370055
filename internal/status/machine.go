package status

import (
	"io/fs"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Machine is the current state of the machine's resources for the process. Unknown values are 0.
type Machine struct {
	Processors       int     `json:"processors"` // GOMAXPROCS
	CPULimit         float64 `json:"cpu_limit"`  // processors permitted by cgroups; 0 means unlimited
	ThrottledSeconds float64 `json:"cpu_throttled_seconds"`
	OpenFiles        int     `json:"open_files"`
	MaxFiles         uint64  `json:"max_files"`
	ResidentBytes    int64   `json:"resident_bytes"`
}

// readMachine reads the state of the machine's resources from /proc and /sys in root.
func readMachine(root fs.FS) Machine {
	m := Machine{
		Processors:    runtime.GOMAXPROCS(0),
		OpenFiles:     openFiles(root),
		MaxFiles:      maxFiles(),
		ResidentBytes: residentBytes(root),
	}
	for group, version := range memory.Groups(root, "cpu") {
		limit := cpuLimit(root, group, version)
		isLower := m.CPULimit == 0 || limit < m.CPULimit
		if limit > 0 && isLower {
			m.CPULimit = limit
		}
		m.ThrottledSeconds = max(m.ThrottledSeconds, throttledSeconds(root, group))
	}
	return m
}

// openFiles returns the number of file descriptors that the process has open.
func openFiles(root fs.FS) int {
	descriptors, _ := fs.ReadDir(root, "proc/self/fd")
	return len(descriptors)
}

// maxFiles returns the number of file descriptors that the process may have open, or 0 if it is
// unknown.
func maxFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return limit.Cur // the soft limit
}

// residentBytes returns the resident memory of the process, or 0 if it is unknown.
func residentBytes(root fs.FS) int64 {
	const residentField = 1 // position in statm; the values are numbers of pages
	fields := readNumbers(root, "proc/self/statm")
	if len(fields) <= residentField {
		return 0
	}
	return int64(fields[residentField]) * int64(os.Getpagesize())
}

// cpuLimit returns the number of processors that a cgroup permits, or 0 if the cgroup has no limit.
// version is the version of the cgroup, 1 or 2.
func cpuLimit(root fs.FS, group string, version int) float64 {
	quota, period := cpuQuota(root, group, version)
	if quota <= 0 || period <= 0 {
		return 0
	}
	return quota / period
}

// cpuQuota returns the CPU time that a cgroup may use in each period, and the period, both in microseconds.
// It returns 0 for values that are unknown or unlimited.
func cpuQuota(root fs.FS, group string, version int) (quota, period float64) {
	if version == 1 {
		quota = readNumber(root, path.Join(group, "cpu.cfs_quota_us"))
		period = readNumber(root, path.Join(group, "cpu.cfs_period_us"))
		return quota, period
	}
	numbers := readNumbers(root, path.Join(group, "cpu.max"))
	if len(numbers) != 2 { // without a limit, the file begins with "max"
		return 0, 0
	}
	return numbers[0], numbers[1]
}

// readNumber returns the number at the beginning of a file, or 0 if it begins with something else.
func readNumber(root fs.FS, name string) float64 {
	numbers := readNumbers(root, name)
	if len(numbers) == 0 {
		return 0
	}
	return numbers[0]
}

// throttledSeconds returns the time for which the CPU limit of a cgroup has throttled the process.
func throttledSeconds(root fs.FS, group string) float64 {
	text, _ := fs.ReadFile(root, path.Join(group, "cpu.stat"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		number, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "throttled_usec": // cgroup v2
			return number / 1e6
		case "throttled_time": // cgroup v1, in nanoseconds
			return number / 1e9
		}
	}
	return 0
}

// readNumbers returns the numbers at the beginning of a file, which must be separated by spaces. It
// stops at the first word that is not a number, and returns nil if the file can't be read.
func readNumbers(root fs.FS, name string) (numbers []float64) {
	text, _ := fs.ReadFile(root, name)
	for field := range strings.FieldsSeq(string(text)) {
		number, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return numbers
		}
		numbers = append(numbers, number)
	}
	return numbers
}
