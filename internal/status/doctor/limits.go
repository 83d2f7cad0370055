package doctor

import (
	"fmt"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// nearLimit is the share of a limit at which the limit counts as nearly reached.
const nearLimit = 0.9

// maxThrottled is the share of the time above which throttling is a problem.
const maxThrottled = 0.01

// checkLimits checks the usage of memory, CPU and open files.
func (f *Findings) checkLimits(s *status.Status) {
	const subject = "limits"
	f.checkMemory(subject, s)
	hasMachine := s.Machine.Processors > 0
	if hasMachine {
		f.checkCPU(subject, s)
		f.checkOpenFiles(subject, s)
	}
}

// mebibytes formats a number of bytes in MiB.
func mebibytes(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }

// checkMemory checks the used memory, and the memory that the configuration permits, against the limit.
func (f *Findings) checkMemory(subject string, s *status.Status) {
	m, budget := &s.Machine, &s.Memory
	switch {
	case budget.LimitBytes == 0:
		f.add(Notice, subject, "set a memory limit for the container, and the defaults adapt to it",
			"no memory limit is set; %s are used, and at most %s with all configured limits exhausted",
			mebibytes(m.ResidentBytes), mebibytes(budget.TotalBytes))
	case budget.TotalBytes > budget.LimitBytes:
		f.add(Wrong, subject, "raise the memory limit of the container, or lower the flags in memory.parts of "+
			"`spanstatsd status --json`, the largest first",
			"the configured limits allow %s of memory, more than the memory limit of %s (%s)",
			mebibytes(budget.TotalBytes), mebibytes(budget.LimitBytes), budget.LimitSource)
	case float64(m.ResidentBytes) > nearLimit*float64(budget.LimitBytes):
		f.add(Wrong, subject, "raise the memory limit of the container", "%s of %s of memory are used",
			mebibytes(m.ResidentBytes), mebibytes(budget.LimitBytes))
	default:
		f.ok(subject, "%s of %s of memory are used", mebibytes(m.ResidentBytes), mebibytes(budget.LimitBytes))
	}
}

// checkCPU checks whether the CPU limit has throttled the daemon, and whether GOMAXPROCS fits the limit.
func (f *Findings) checkCPU(subject string, s *status.Status) {
	m := &s.Machine
	hasLimit := m.CPULimit > 0
	throttledShare := m.ThrottledSeconds / max(s.UptimeSeconds, 1)
	switch {
	case hasLimit && throttledShare > maxThrottled:
		f.add(Wrong, subject, "raise or remove the CPU limit of the container",
			"the daemon was throttled for %.0f s by its limit of %.2g processors", m.ThrottledSeconds, m.CPULimit)
	case hasLimit && float64(m.Processors) > math.Ceil(m.CPULimit):
		f.add(Notice, subject, "unset GOMAXPROCS, or set it to the CPU limit",
			"the daemon uses %d processors in parallel, but its CPU limit is %.2g", m.Processors, m.CPULimit)
	default:
		f.ok(subject, "%d processors; throttled for less than %.0f %% of the time", m.Processors, 100*maxThrottled)
	}
}

// checkOpenFiles adds a finding about whether the number of open files is near the limit of the process.
// It adds another one for each connection limit that the daemon has lowered because of this limit.
func (f *Findings) checkOpenFiles(subject string, s *status.Status) {
	m := &s.Machine
	hasLimit := m.MaxFiles > 0
	isNearLimit := hasLimit && float64(m.OpenFiles) > nearLimit*float64(m.MaxFiles)
	if isNearLimit {
		f.add(Wrong, subject, "raise the limit of open files (LimitNOFILE, ulimit -n)",
			"%d of %d files are open", m.OpenFiles, m.MaxFiles)
	} else {
		f.ok(subject, "%d of %d files are open", m.OpenFiles, m.MaxFiles)
	}
	for _, setting := range s.Config {
		if setting.Origin == status.FromDescriptors {
			f.add(Notice, subject, "raise the limit of open files (LimitNOFILE, ulimit -n) to allow more connections",
				"--%s was lowered to %s to fit the limit of open files", setting.Name, setting.Value)
		}
	}
}
