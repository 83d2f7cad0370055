package doctor

import "github.com/spanstatsd/spanstatsd/internal/health"

// Look looks at a daemon. The version is that of the program that looks.
func Look(s *health.Status, version string) Findings {
	var f Findings
	f.program(s, version)
	f.doors(s)
	f.sdks(s)
	f.twice(s)
	f.destinations(s)
	f.sums(s)
	f.limits(s)
	return f
}
