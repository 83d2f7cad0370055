package statustext

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/sanitize"
)

// Limits of the lists in the text; --json contains all entries.
const (
	shownBusiest = 8
	shownFlushes = 5
	shownTracers = 8
	shownLabel   = 40 // characters of a label
)

// statusText writes one status as text, from the most to the least important information.
type statusText struct {
	strings.Builder
	paint
	now  *status.Status
	last *status.Status // earlier status; can be nil
}

func (t *statusText) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *statusText) section(name, note string) { t.line("\n%s  %s", t.bold(name), t.dim(note)) }

// table writes rows of aligned cells. Cells must not contain colors, which would count as width.
func (t *statusText) table(rows [][]string) {
	table := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintln(table, "  "+strings.Join(cells, "\t"))
	}
	table.Flush() // writing to a strings.Builder never fails
}

// Render returns the text of a status, optionally with terminal colors. last is an earlier status,
// for rates, or nil.
func Render(s *status.Status, last *status.Status, colours bool) string {
	t := &statusText{paint: paint(colours), now: s, last: last}
	t.head()
	t.books()
	t.rings()
	t.destinations()
	t.forward()
	t.flushes()
	t.busiest()
	t.tracers()
	return trimLines(t.String())
}

// head writes the version, uptime, readiness, and crashed predecessors.
func (t *statusText) head() {
	s := t.now
	ready := t.good("ready")
	if !s.Ready {
		ready = t.bad(sanitize.Text(s.NotReady))
	}
	t.line("%s  up %s  %s  %s", t.bold("spanstatsd "+sanitize.Text(s.Version)),
		ago(seconds(s.UptimeSeconds)), ready, t.dim(s.At.Local().Format(time.DateTime)))
	t.killed()
}

// killed writes the losses of crashed predecessors.
func (t *statusText) killed() {
	s := t.now
	if s.Died == 0 {
		return
	}
	subject, losses := "The daemon before this one was killed", s.Killed.Sum()
	if s.Died > 1 {
		subject = count(s.Died) + " daemons before this one were killed"
	}
	t.line("%s", t.warn(fmt.Sprintf("%s: %s spans are lost, %s more may have arrived, %s are awaited from "+
		"clients.", subject, count(losses.Lost), count(losses.Ambiguous), count(s.Killed.Awaited))))
	if s.Killed.Unknown > 0 {
		t.line("%s", t.warn("Nobody knows what "+count(s.Killed.Unknown)+" of them held."))
	}
}

// rings writes the usage of each drainer's ring.
func (t *statusText) rings() {
	s := t.now
	t.section(
		"Rings",
		fmt.Sprintf("%d partitions, %s of %s aggregates, %s of %s origins", s.Partitions.Partitions,
			count(s.Aggregates.Live), count(s.Aggregates.Max), count(s.Origins.Live), count(s.Origins.Max)),
	)
	for i, d := range s.Drainers {
		share := func(n int) float64 { return float64(n) / float64(max(d.Ring.Slots, 1)) }
		text := bar(share(d.Ring.Used), share(d.Ring.HighWater), 24)
		switch high := share(d.Ring.HighWater); {
		case high > .9:
			text = t.bad(text)
		case high > .6:
			text = t.warn(text)
		default:
			text = t.accent(text)
		}
		t.line("  %3d  %s  %s of %s slots, at most %s  aggregated %s", i, text,
			count(d.Ring.Used), count(d.Ring.Slots), count(d.Ring.HighWater), count(d.Aggregated))
	}
}

// flushes writes a table of the last flushes.
func (t *statusText) flushes() {
	if len(t.now.Flushes) == 0 {
		return
	}
	t.section("Last flushes", "")
	rows := [][]string{{"SEALED", "SPANS", "PAYLOADS", "SIZE", "OUTCOME", ""}}
	for _, f := range t.now.Flushes[:min(len(t.now.Flushes), shownFlushes)] {
		rows = append(rows, []string{
			f.Sealed.Local().Format(time.TimeOnly), count(f.Spans), count(f.Payloads), bytesText(f.Bytes),
			outcome(&f), clip(sanitize.Text(f.LastError), 2*shownLabel),
		})
	}
	t.table(rows)
}

// outcome describes the results of a flush's payloads.
func outcome(f *export.Flush) string {
	var parts []string
	for _, result := range export.Results {
		if n := f.Outcomes[result]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, result))
		}
	}
	if f.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", f.Pending))
	}
	return strings.Join(parts, ", ")
}

// busiest writes a table of the aggregates with the most spans.
func (t *statusText) busiest() {
	b := &t.now.Busiest
	if len(b.Rows) == 0 {
		return
	}
	duration := b.End.Sub(b.Start).Seconds()
	first, last := usedColumns(b)
	t.section("Busiest aggregates", fmt.Sprintf("of %s in the %s to %s", count(b.Aggregates),
		ago(b.End.Sub(b.Start)), b.End.Local().Format(time.TimeOnly)))
	rows := [][]string{{"HITS", "ERRORS", "P50", "P95", "P99", "LATENCY", "SERVICE", "OPERATION", "RESOURCE"}}
	for _, r := range b.Rows[:min(len(b.Rows), shownBusiest)] {
		errors := "-"
		if r.Errors > 0 && r.Hits > 0 {
			errors = fmt.Sprintf("%.1f%%", r.Errors/r.Hits*100)
		}
		rows = append(rows, []string{
			perSecond(r.Hits / max(duration, 1e-3)), errors, latency(r.P50), latency(r.P95), latency(r.P99),
			sparkline(r.Latency[first:last]), clip(sanitize.Text(r.Service), shownLabel),
			clip(sanitize.Text(r.Operation), shownLabel), clip(sanitize.Text(r.Resource), shownLabel),
		})
	}
	t.table(rows)
}

// usedColumns returns the range of columns that are used by any row, so that all curves are as
// narrow as possible and have the same axis.
func usedColumns(b *export.Busiest) (first, last int) {
	first = b.Curve.Columns
	for _, r := range b.Rows {
		for i, n := range r.Latency {
			if n > 0 {
				first, last = min(first, i), max(last, i+1)
			}
		}
	}
	return min(first, last), last
}

// tracers writes the requests by receiver, and a table of the connected tracers.
func (t *statusText) tracers() {
	s := t.now
	t.section("Tracers",
		fmt.Sprintf("%s of %s connections", count(s.Connections.Live), count(s.Connections.Max)))
	if s.APM != nil {
		t.line("  requests through the agent's API: %s", nonZeroCounts(s.APM.Requests))
	}
	for _, d := range t.receivers() {
		t.line("  requests by %s: %s", d.Receives, nonZeroCounts(d.Requests))
	}
	rows := [][]string{{"SERVICE", "ENV", "LANG", "PID", "UID", "SPANS", "DROPPED", "CONNECTED"}}
	for _, tracer := range s.Tracers[:min(len(s.Tracers), shownTracers)] {
		rows = append(rows, []string{
			clip(sanitize.Text(tracer.Service),
				shownLabel), clip(sanitize.Text(tracer.Env), shownLabel), sanitize.Text(tracer.Lang),
			fmt.Sprint(tracer.PID), fmt.Sprint(tracer.UID), count(tracer.Received), count(tracer.Dropped),
			ago(s.At.Sub(tracer.Since)),
		})
	}
	if len(rows) > 1 {
		t.table(rows)
	}
	if more := max(len(s.Tracers)-shownTracers, 0) + s.TracersNotShown; more > 0 {
		t.line("  %s", t.dim("and "+count(more)+" more; --json lists them"))
	}
}

// trimLines removes spaces at the ends of lines.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// nonZeroCounts lists the counts that are not 0, by reason.
func nonZeroCounts(by map[string]uint64) string {
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		if by[reason] > 0 {
			parts = append(parts, sanitize.Text(reason)+" "+count(by[reason]))
		}
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// clip truncates a text to n characters.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
