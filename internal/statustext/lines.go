package statustext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// These lengths bound what a person is shown of each list; --json has all of it.
const (
	shownBusiest = 8
	shownFlushes = 5
	shownTracers = 8
	shownLabel   = 40 // characters of a label
)

// statusText writes one status for a person: whether anything is lost comes
// first, what is only interesting last.
type statusText struct {
	strings.Builder
	paint
	now  *health.Status
	last *health.Status // an earlier one, or nil
}

func (t *statusText) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *statusText) section(name, note string) { t.line("\n%s  %s", t.bold(name), t.dim(note)) }

// table writes rows of cells that line up. Colours would be counted as width, so
// there are none within it.
func (t *statusText) table(rows [][]string) {
	table := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintln(table, "  "+strings.Join(cells, "\t"))
	}
	table.Flush() // to memory
}

// trimLines takes away the spaces at the ends of lines, which columns leave.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// nonZeroCounts lists the counts of reasons that are not 0.
func nonZeroCounts(by map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		if by[reason] > 0 {
			parts = append(parts, shown.Text(reason)+" "+count(by[reason]))
		}
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// clip keeps so many characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
