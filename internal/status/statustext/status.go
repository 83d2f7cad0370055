package statustext

import (
	"fmt"
	"maps"
	"math"
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
	shownClients = 8
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
func Render(s *status.Status, last *status.Status, colors bool) string {
	t := &statusText{paint: paint(colors), now: s, last: last}
	t.head()
	t.requests()
	t.accounting()
	t.destinations()
	t.upstreams()
	t.flushes()
	t.senders()
	t.limits()
	t.drainers()
	return trimLines(t.String())
}

// head writes the version, uptime and readiness, and the most important messages.
func (t *statusText) head() {
	s := t.now
	ready := t.good("ready")
	if !s.Ready {
		ready = t.bad("not ready: " + sanitize.Text(s.NotReady))
	}
	t.line("%s  up %s  %s  %s", t.bold("spanstatsd "+sanitize.Text(s.Version)),
		ago(seconds(s.UptimeSeconds)), ready, t.dim(s.At.Local().Format(time.DateTime)))
	t.crashes()
	t.line("%s", t.summary())
	if text := t.sampled(); text != "" {
		t.line("%s", text)
	}
}

// crashes writes the losses of crashed predecessors.
func (t *statusText) crashes() {
	s := t.now
	if s.Crashed == 0 {
		return
	}
	subject, losses := "The previous daemon crashed or was killed", s.LostToCrashes.Sum()
	if s.Crashed > 1 {
		subject = count(s.Crashed) + " previous daemons crashed or were killed"
	}
	t.line("%s", t.warn(fmt.Sprintf("%s: %s spans are lost, %s more may be lost, and clients are expected to resend %s.",
		subject, count(losses.Lost), count(losses.Ambiguous), count(s.LostToCrashes.Awaited))))
	if n := s.LostToCrashes.Unknown; n > 0 {
		t.line("%s", t.warn("The losses of "+count(n)+" of them are unknown, because their recovery files are unreadable."))
	}
}

// flushes writes a table of the last flushes.
func (t *statusText) flushes() {
	if len(t.now.Flushes) == 0 {
		return
	}
	t.section("Last flushes", "")
	rows := [][]string{{"TIME", "SPANS", "PAYLOADS", "SIZE", "OUTCOME", "ERROR"}}
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
		parts = append(parts, fmt.Sprintf("%d pending", f.Pending))
	}
	return strings.Join(parts, ", ")
}

// requests writes rate, errors and latency of the busiest aggregates.
func (t *statusText) requests() {
	b := &t.now.Busiest
	if len(b.Rows) == 0 {
		return
	}
	duration := b.End.Sub(b.Start)
	rows := b.Rows[:min(len(b.Rows), shownBusiest)]
	first, last := usedColumns(rows)
	t.section("Requests", fmt.Sprintf("%s of %s label sets, the busiest, in the %s before %s", count(len(rows)),
		count(b.Aggregates), ago(duration), b.End.Local().Format(time.TimeOnly)))
	table := [][]string{{"RATE", "ERRORS", "P50", "P95", "P99", "LATENCY", "SERVICE", "OPERATION", "RESOURCE"}}
	for _, r := range rows {
		errors := "-"
		if r.Errors > 0 && r.Hits > 0 {
			errors = fmt.Sprintf("%.1f%%", r.Errors/r.Hits*100)
		}
		table = append(table, []string{
			perSecond(r.Hits / max(duration.Seconds(), 1e-3)), errors, latency(r.P50), latency(r.P95), latency(r.P99),
			sparkline(r.Latency[min(first, len(r.Latency)):min(last, len(r.Latency))]), clip(sanitize.Text(r.Service), shownLabel),
			clip(sanitize.Text(r.Operation), shownLabel), clip(sanitize.Text(r.Resource), shownLabel),
		})
	}
	t.table(table)
}

// usedColumns returns the range of columns that are used by any row, so that all curves are as
// narrow as possible and have the same axis.
func usedColumns(rows []export.BusyKey) (first, last int) {
	first = math.MaxInt
	for _, r := range rows {
		for i, n := range r.Latency {
			if n > 0 {
				first, last = min(first, i), max(last, i+1)
			}
		}
	}
	return min(first, last), last
}

// senders writes the requests by receiver, and a table of the native clients. It does not mention native clients if there
// never was one, but another receiver.
func (t *statusText) senders() {
	s := t.now
	t.section("Senders", "")
	for _, name := range t.receivers() {
		d := s.Receivers[name]
		requests := nonZeroCounts(d.Requests)
		if requests == "" {
			requests = "none yet"
		}
		t.line("  requests over %s: %s  %s", sanitize.Text(d.Data), requests,
			t.dim(count(d.Connections.Live)+" of "+count(d.Connections.Max)+" connections"))
	}
	if s.Connections.Total == 0 && len(s.Receivers) > 0 {
		return
	}
	t.line("  native clients: %s of %s connections", count(s.Connections.Live), count(s.Connections.Max))
	rows := [][]string{{"SERVICE", "ENV", "LANG", "PID", "UID", "SPANS", "DROPPED", "CONNECTED"}}
	for _, client := range s.Clients[:min(len(s.Clients), shownClients)] {
		rows = append(rows, []string{
			clip(sanitize.Text(client.Service), shownLabel), clip(sanitize.Text(client.Env), shownLabel),
			clip(sanitize.Text(client.Lang), shownLabel), fmt.Sprint(client.PID), fmt.Sprint(client.UID),
			count(client.Received), count(client.Dropped), ago(s.At.Sub(client.Since)),
		})
	}
	if len(rows) > 1 {
		t.table(rows)
	}
	if more := max(len(s.Clients)-shownClients, 0) + s.ClientsNotShown; more > 0 {
		t.line("  %s", t.dim("and "+count(more)+" more; --json lists up to 50"))
	}
}

// limits writes the usage of cardinality limits in the current interval, and spans whose labels exceeded them.
func (t *statusText) limits() {
	s := t.now
	t.section("Cardinality", fmt.Sprintf("%s of %s aggregates, %s of %s origins in this interval",
		count(s.Aggregates.Live), count(s.Aggregates.Max), count(s.Origins.Live), count(s.Origins.Max)))
	if text := nonZeroCounts(s.Collapsed); text != "" {
		t.line("  %s", t.warn("spans counted with a replaced label, because it has too many values: "+text))
	}
}

// drainers writes the usage of each drainer's ring.
func (t *statusText) drainers() {
	t.section("Drainers", fmt.Sprintf("%d partitions", t.now.Partitions.Partitions))
	for i, d := range t.now.Drainers {
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
		t.line("  %3d  %s  %s of %s ring slots in use, %s at most  %s spans aggregated", i, text,
			count(d.Ring.Used), count(d.Ring.Slots), count(d.Ring.HighWater), count(d.Aggregated))
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
