package doctor

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/health"
)

// Verdict is how right something is.
type Verdict string

// The verdicts, the best first.
const (
	OK     Verdict = "ok"
	Notice Verdict = "notice"
	Wrong  Verdict = "wrong"
)

// Finding is one thing that is said of a daemon.
type Finding struct {
	About   string  `json:"about"`
	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"`
	Mend    string  `json:"mend,omitempty"`
}

// Findings are those of a daemon, in the order of a span's way.
type Findings []Finding

func (f *Findings) ok(about, format string, args ...any) {
	*f = append(*f, Finding{about, OK, fmt.Sprintf(format, args...), ""})
}

func (f *Findings) add(v Verdict, about, mend, format string, args ...any) {
	*f = append(*f, Finding{about, v, fmt.Sprintf(format, args...), mend})
}

// reasons adds a finding for each reason that has a count, in the words that a table has for its mend.
func (f *Findings) reasons(v Verdict, about string, counts map[string]uint64, mends map[string]string,
	format string,
) {
	for _, reason := range sortedOf(counts) {
		if mend, known := mends[reason]; known {
			f.add(v, about, mend, format, counts[reason], reason)
		}
	}
}

// Wrong is how many things are to be mended.
func (f Findings) Wrong() (n int) {
	for i := range f {
		if f[i].Verdict == Wrong {
			n++
		}
	}
	return n
}

// setting is the value of a flag.
func setting(s *health.Status, name string) string {
	for i := range s.Config {
		if s.Config[i].Name == name {
			return s.Config[i].Value
		}
	}
	return ""
}

// sortedOf are the names that have a count.
func sortedOf(counts map[string]uint64) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			names = append(names, name)
		}
	}
	return names
}
