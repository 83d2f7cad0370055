package doctor

import (
	"fmt"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// nearLimit is the share of a limit at which the limit counts as nearly reached.
const nearLimit = 0.9

// limits checks the usage of memory, CPU and open files.
func (f *Findings) limits(s *status.Status) {
	const about = "limits"
	m, budget := &s.Machine, &s.Memory
	size := func(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) }
	switch {
	case budget.LimitBytes == 0:
		f.add(Notice, about, "give the container a limit of memory, and defaults follow it",
			"no limit of memory is known; all limits together come to %s", size(budget.TotalBytes))
	case budget.TotalBytes > budget.LimitBytes:
		f.add(Wrong, about, "raise the container's limit, or lower the flags of the largest parts, "+
			"which spanstatsd status --json has in memory.parts",
			"all limits together may come to %s, of the %s that %s allows",
			size(budget.TotalBytes), size(budget.LimitBytes), budget.LimitSource)
	case float64(m.ResidentBytes) > nearLimit*float64(budget.LimitBytes):
		f.add(Wrong, about, "raise the container's limit of memory", "%s of %s are used",
			size(m.ResidentBytes), size(budget.LimitBytes))
	default:
		f.ok(about, "%s of memory are used, of %s", size(m.ResidentBytes), size(budget.LimitBytes))
	}
	if m.Processors == 0 {
		return // an older daemon without this section
	}
	switch throttled := m.ThrottledSeconds / max(s.UptimeSeconds, 1); {
	case m.CPULimit > 0 && throttled > 0.01:
		f.add(Wrong, about, "raise the container's limit of CPU, or have none",
			"it was held back for %.0f s by its limit of %.2g processors", m.ThrottledSeconds, m.CPULimit)
	case m.CPULimit > 0 && float64(m.Processors) > math.Ceil(m.CPULimit):
		f.add(Notice, about, "set GOMAXPROCS, or leave it to the program",
			"it uses %d processors at a time, and may use %.2g", m.Processors, m.CPULimit)
	default:
		f.ok(about, "%d processors, never held back for long", m.Processors)
	}
	switch {
	case m.MaxFiles > 0 && float64(m.OpenFiles) > nearLimit*float64(m.MaxFiles):
		f.add(Wrong, about, "raise its limit of open files (LimitNOFILE, ulimit -n)",
			"%d of %d files are open", m.OpenFiles, m.MaxFiles)
	default:
		f.ok(about, "%d of %d files are open", m.OpenFiles, m.MaxFiles)
	}
	for i := range s.Config {
		if c := &s.Config[i]; c.Origin == "descriptors" {
			f.add(Notice, about, "raise its limit of open files, for more connections",
				"--%s is %s, because there may be no more files", c.Name, c.Value)
		}
	}
}
