package doctor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Verdict is the severity of a finding.
type Verdict string

// The verdicts, from good to bad.
const (
	OK     Verdict = "ok"
	Notice Verdict = "notice"
	Wrong  Verdict = "wrong"
)

// Finding is one statement about a daemon.
type Finding struct {
	Subject string  `json:"about"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"says"`
	Fix     string  `json:"mend,omitempty"`
}

// Findings are the findings about a daemon, in the order of the data flow.
type Findings []Finding

// ok adds a finding about a subject that is right.
func (f *Findings) ok(about, format string, args ...any) {
	f.add(OK, about, "", format, args...)
}

// add adds a finding about a subject.
func (f *Findings) add(v Verdict, about, fix, format string, args ...any) {
	*f = append(*f, Finding{Subject: about, Verdict: v, Message: fmt.Sprintf(format, args...), Fix: fix})
}

// reasons adds a finding for each reason in counts that has a count above 0 and an entry in fixes. format gets the count
// and the reason.
func (f *Findings) reasons(v Verdict, about string, counts map[string]uint64, fixes map[string]string,
	format string,
) {
	for _, reason := range sortedNonZero(counts) {
		if fix, known := fixes[reason]; known {
			f.add(v, about, fix, format, counts[reason], reason)
		}
	}
}

// Wrong returns the number of findings that need a fix.
func (f Findings) Wrong() (n int) {
	for i := range f {
		if f[i].Verdict == Wrong {
			n++
		}
	}
	return n
}

// setting returns the value of a flag.
func setting(s *status.Status, name string) string {
	for i := range s.Config {
		if s.Config[i].Name == name {
			return s.Config[i].Value
		}
	}
	return ""
}

// sortedNonZero returns the sorted keys of the counts that are not 0.
func sortedNonZero(counts map[string]uint64) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Look checks the status of a daemon. version is the version of the program that calls it.
func Look(s *status.Status, version string) Findings {
	var f Findings
	f.program(s, version)
	f.receivers(s)
	f.sdks(s)
	f.twice(s)
	f.destinations(s)
	f.sums(s)
	f.limits(s)
	return f
}

// program checks readiness, the version, and crashed predecessors.
func (f *Findings) program(s *status.Status, version string) {
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
