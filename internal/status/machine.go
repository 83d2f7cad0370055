package status

import (
	"io/fs"
	"math"
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

// readMachine reads the state from the file system.
func readMachine(root fs.FS) Machine {
	m := Machine{Processors: runtime.GOMAXPROCS(0), CPULimit: math.Inf(1)}
	for group, version := range memory.Groups(root, "cpu") {
		if limit := processors(root, group, version); limit > 0 {
			m.CPULimit = min(m.CPULimit, limit)
		}
		m.ThrottledSeconds = max(m.ThrottledSeconds, throttled(root, group))
	}
	if math.IsInf(m.CPULimit, 1) {
		m.CPULimit = 0
	}
	open, _ := fs.ReadDir(root, "proc/self/fd")
	m.OpenFiles = len(open)
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) == nil {
		m.MaxFiles = limit.Cur
	}
	if pages := numbers(root, "proc/self/statm"); len(pages) > 1 {
		m.ResidentBytes = int64(pages[1]) * int64(os.Getpagesize())
	}
	return m
}

// processors returns the number of processors that a cgroup permits, or 0 if the cgroup has no limit.
func processors(root fs.FS, group string, version int) float64 {
	quota := numbers(root, path.Join(group, "cpu.max"))
	if version == 1 {
		quota = append(numbers(root, path.Join(group, "cpu.cfs_quota_us")),
			numbers(root, path.Join(group, "cpu.cfs_period_us"))...)
	}
	if len(quota) != 2 || quota[0] <= 0 || quota[1] <= 0 {
		return 0
	}
	return quota[0] / quota[1]
}

// throttled returns the time for which a cgroup was throttled, in seconds. Cgroup v2 reports microseconds, v1 reports
// nanoseconds.
func throttled(root fs.FS, group string) float64 {
	text, _ := fs.ReadFile(root, path.Join(group, "cpu.stat"))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "throttled_usec":
			return n / 1e6
		case "throttled_time":
			return n / 1e9
		}
	}
	return 0
}

// numbers returns the numbers at the start of a file, up to the first field that is not a number.
func numbers(root fs.FS, name string) (all []float64) {
	text, _ := fs.ReadFile(root, name)
	for _, field := range strings.Fields(string(text)) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return all
		}
		all = append(all, n)
	}
	return all
}
