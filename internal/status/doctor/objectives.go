package doctor

import "github.com/spanstatsd/spanstatsd/internal/status"

// checkObjectives checks whether each service level objective has counted spans.
func (f *Findings) checkObjectives(s *status.Status) {
	const subject = "objectives"
	for _, o := range s.Objectives {
		switch {
		case o.Events > 0:
			f.ok(subject, "%s: %.0f of %.0f spans are good", o.Name, o.Good, o.Events)
		case s.Accounting.Aggregated > 0:
			f.add(Notice, subject, "compare its labels in --slo with those of the busiest spans in `spanstatsd status`: names are "+
				"those under which spans are counted, and only server and consumer spans match without kind",
				"%s has counted no span, although %d others were counted", o.Name, s.Accounting.Aggregated)
		}
	}
}
