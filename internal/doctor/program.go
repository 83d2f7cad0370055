package doctor

import "github.com/spanstatsd/spanstatsd/internal/health"

func (f *Findings) program(s *health.Status, version string) {
	const about = "program"
	switch {
	case !s.Ready:
		f.add(Wrong, about, "what it waits for is in its log", "it is not ready: %s", s.NotReady)
	case s.Version != version:
		f.add(Notice, about, "look with the daemon's own program",
			"the daemon is version %s, and this program is %s", s.Version, version)
	default:
		f.ok(about, "version %s, running for %.0f s", s.Version, s.UptimeSeconds)
	}
	if lost := s.Killed.Sum(); s.Died > 0 {
		f.add(Wrong, about, "the events of its pod say why: give it memory, or time to stop "+
			"(terminationGracePeriodSeconds)",
			"%d daemons before this one were killed; %d spans were lost with them, and %d more may be",
			s.Died, lost.Lost, lost.Ambiguous)
	}
}
