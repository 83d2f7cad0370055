package doctor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// Verdict is the severity of a finding.
type Verdict string

// The verdicts, from good to bad.
const (
	OK     Verdict = "ok"
	Notice Verdict = "notice"
	Wrong  Verdict = "wrong"
)

// Finding is one statement about a daemon. Its texts contain no control characters.
type Finding struct {
	Subject string  `json:"subject"`
	Verdict Verdict `json:"verdict"`
	Message string  `json:"message"`
	Fix     string  `json:"fix,omitempty"`
}

// Findings are the findings about a daemon, in the order of the data flow.
type Findings []Finding

// ok adds a finding about a subject without a problem.
func (f *Findings) ok(subject, format string, args ...any) {
	f.Add(OK, subject, "", fmt.Sprintf(format, args...))
}

// add adds a finding about a subject.
func (f *Findings) add(v Verdict, subject, fix, format string, args ...any) {
	f.Add(v, subject, fix, fmt.Sprintf(format, args...))
}

// Add adds a finding about a subject. It escapes control characters in all texts, because texts can
// contain names and error messages from clients or from other servers.
func (f *Findings) Add(v Verdict, subject, fix, message string) {
	*f = append(*f, Finding{
		Subject: sanitize.Text(subject), Verdict: v, Message: sanitize.Text(message), Fix: sanitize.Text(fix),
	})
}

// addReasons adds a finding for each reason with a count above 0, if fixes contains a fix for the
// reason. format is the format of the message; its arguments are the count and the reason.
func (f *Findings) addReasons(v Verdict, subject string, counts map[string]uint64, fixes map[string]string,
	format string,
) {
	for _, reason := range sortedNonZero(counts) {
		if fix, known := fixes[reason]; known {
			f.add(v, subject, fix, format, counts[reason], reason)
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

// setting returns the value of a flag of the daemon, or "" if the status does not contain the flag.
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

// Diagnose returns findings about a daemon with the given status. If version, the version of the calling
// program, differs from the version of the daemon, one of the findings says so.
func Diagnose(s *status.Status, version string) Findings {
	var f Findings
	f.checkProgram(s, version)
	f.checkReceivers(s)
	f.checkSDKs(s)
	f.checkSampling(s)
	f.checkDoubleCounting(s)
	f.checkDestinations(s)
	f.checkAccounting(s)
	f.checkObjectives(s)
	f.checkLimits(s)
	return f
}

// checkProgram checks readiness and the version of the daemon, and whether daemons before it crashed.
func (f *Findings) checkProgram(s *status.Status, version string) {
	const subject = "program"
	switch {
	case !s.Ready:
		f.add(Wrong, subject, "read the log of the daemon for the cause", "the daemon is not ready: %s", s.NotReady)
	case s.Version != version:
		f.add(Notice, subject, "run the doctor of the same version as the daemon",
			"the daemon is version %s, and this program is version %s", s.Version, version)
	default:
		f.ok(subject, "version %s is ready, and has been running for %.0f s", s.Version, s.UptimeSeconds)
	}
	if s.Crashed > 0 {
		lost := s.LostToCrashes.Sum()
		f.add(Wrong, subject, "find the cause in the events of the pod: raise the memory limit after OOMKilled, and "+
			"terminationGracePeriodSeconds after a kill during shutdown",
			"previous daemons that crashed or were killed: %d; with them, %d spans were lost, and %d more may be lost",
			s.Crashed, lost.Lost, lost.Ambiguous)
	}
}
