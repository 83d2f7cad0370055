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
	"github.com/spanstatsd/spanstatsd/internal/registry"
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
	current  *status.Status
	previous *status.Status // nil if there is none
}

func (t *statusText) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *statusText) warning(format string, args ...any) {
	t.line("%s", t.warn(fmt.Sprintf(format, args...)))
}

func (t *statusText) section(name, note string) { t.line("\n%s  %s", t.bold(name), t.dim(note)) }

// writeTable writes rows of aligned cells. Cells must not contain color codes, because these would count
// as visible characters.
func (t *statusText) writeTable(rows [][]string) {
	aligned := tabwriter.NewWriter(&t.Builder, 0, 0, 2, ' ', 0)
	for _, cells := range rows {
		fmt.Fprintln(aligned, "  "+strings.Join(cells, "\t"))
	}
	aligned.Flush() // writing to a strings.Builder never fails
}

// Render returns the text of a status, optionally with terminal colors. previous is an earlier status of
// the same daemon; if it is nil, the text contains no rates.
func Render(s *status.Status, previous *status.Status, colors bool) string {
	t := &statusText{paint: paint(colors), current: s, previous: previous}
	t.writeHead()
	t.writeRequests()
	t.writeAccounting()
	t.writeDestinations()
	t.writeUpstreams()
	t.writeFlushes()
	t.writeSenders()
	t.writeLimits()
	t.writeDrainers()
	return trimLines(t.String())
}

// writeHead writes the version, uptime and readiness of the daemon, and the most important messages.
func (t *statusText) writeHead() {
	s := t.current
	ready := t.good("ready")
	if !s.Ready {
		ready = t.bad("not ready: " + sanitize.Text(s.NotReady))
	}
	t.line("%s  up %s  %s  %s", t.bold("spanstatsd "+sanitize.Text(s.Version)),
		ago(seconds(s.UptimeSeconds)), ready, t.dim(s.At.Local().Format(time.DateTime)))
	t.writeCrashes()
	t.line("%s", t.summary())
	if text := t.samplingNote(); text != "" {
		t.line("%s", text)
	}
}

// writeCrashes writes how many spans were lost because previous daemons crashed or were killed. It writes
// nothing if there were no such daemons.
func (t *statusText) writeCrashes() {
	crashed := t.current.Crashed
	if crashed == 0 {
		return
	}
	losses := &t.current.LostToCrashes
	spans := losses.Sum()
	subject := "The previous daemon crashed or was killed"
	if crashed > 1 {
		subject = count(crashed) + " previous daemons crashed or were killed"
	}
	t.warning("%s: %s spans are lost, %s more may be lost, and clients are expected to resend %s.",
		subject, count(spans.Lost), count(spans.Ambiguous), count(losses.Awaited))
	if losses.Unknown > 0 {
		t.warning("The losses of %s of them are unknown, because their recovery files are unreadable.", count(losses.Unknown))
	}
}

// writeFlushes writes a table of the last flushes.
func (t *statusText) writeFlushes() {
	if len(t.current.Flushes) == 0 {
		return
	}
	t.section("Last flushes", "")
	rows := [][]string{{"TIME", "SPANS", "PAYLOADS", "SIZE", "OUTCOME", "ERROR"}}
	for _, f := range t.current.Flushes[:min(len(t.current.Flushes), shownFlushes)] {
		rows = append(rows, []string{
			f.Sealed.Local().Format(time.TimeOnly), count(f.Spans), count(f.Payloads), bytesText(f.Bytes),
			outcome(&f), clip(sanitize.Text(f.LastError), 2*shownLabel),
		})
	}
	t.writeTable(rows)
}

// outcome describes the results of a flush's payloads, for example "2 accepted, 1 pending".
func outcome(f *export.Flush) string {
	var parts []string
	for _, result := range export.Results {
		payloads := f.Outcomes[result]
		if payloads > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", payloads, result))
		}
	}
	if f.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", f.Pending))
	}
	return strings.Join(parts, ", ")
}

// writeRequests writes a table with the request rate, errors and latencies of the busiest label sets.
func (t *statusText) writeRequests() {
	busiest := &t.current.Busiest
	if len(busiest.Rows) == 0 {
		return
	}
	interval := busiest.End.Sub(busiest.Start)
	rows := busiest.Rows[:min(len(busiest.Rows), shownBusiest)]
	t.section("Requests", fmt.Sprintf("%s of %s label sets, busiest first, in the %s before %s", count(len(rows)),
		count(busiest.Aggregates), ago(interval), busiest.End.Local().Format(time.TimeOnly)))
	first, end := usedBuckets(rows)
	table := [][]string{{"RATE", "ERRORS", "P50", "P95", "P99", "LATENCY", "SERVICE", "OPERATION", "RESOURCE"}}
	for _, r := range rows {
		histogram := r.Latency[min(first, len(r.Latency)):min(end, len(r.Latency))]
		table = append(table, []string{
			rateText(r.Hits / max(interval.Seconds(), 1e-3)), errorShare(&r),
			latency(r.P50), latency(r.P95), latency(r.P99), sparkline(histogram),
			clip(sanitize.Text(r.Service), shownLabel), clip(sanitize.Text(r.Operation), shownLabel),
			clip(sanitize.Text(r.Resource), shownLabel),
		})
	}
	t.writeTable(table)
}

// errorShare formats the share of requests with an error, for example "2.5%". It returns "-" if no
// request has an error.
func errorShare(r *export.BusyKey) string {
	if r.Errors == 0 || r.Hits == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", r.Errors/r.Hits*100)
}

// usedBuckets returns the smallest range of latency buckets, from first to end-1, that contains all
// non-zero counts of the rows. Histograms that are drawn only in this range are short and have the
// same axis.
func usedBuckets(rows []export.BusyKey) (first, end int) {
	first = math.MaxInt
	for _, r := range rows {
		for bucket, requests := range r.Latency {
			if requests > 0 {
				first = min(first, bucket)
				end = max(end, bucket+1)
			}
		}
	}
	if end == 0 { // all counts are 0
		return 0, 0
	}
	return first, end
}

// writeSenders writes the requests of each HTTP receiver, and a table of the native clients. It omits the
// table if no native client has ever connected and another receiver is enabled.
func (t *statusText) writeSenders() {
	t.section("Senders", "")
	for _, name := range t.receivers() {
		receiver := t.current.Receivers[name]
		requests := nonZeroCounts(receiver.Requests)
		if requests == "" {
			requests = "none yet"
		}
		connections := count(receiver.Connections.Live) + " of " + count(receiver.Connections.Max) + " connections"
		t.line("  requests over %s: %s  %s", sanitize.Text(receiver.Protocol), requests, t.dim(connections))
	}
	wasNativeUsed := t.current.Connections.Total > 0
	isNativeOnly := len(t.current.Receivers) == 0
	if wasNativeUsed || isNativeOnly {
		t.writeClients()
	}
}

// writeClients writes the number of native clients, and a table of the first ones.
func (t *statusText) writeClients() {
	s := t.current
	t.line("  native clients: %s of %s connections", count(s.Connections.Live), count(s.Connections.Max))
	rows := [][]string{{"SERVICE", "ENV", "LANG", "PID", "UID", "SPANS", "DROPPED", "CONNECTED"}}
	for _, client := range s.Clients[:min(len(s.Clients), shownClients)] {
		rows = append(rows, []string{
			clip(sanitize.Text(client.Service), shownLabel), clip(sanitize.Text(client.Env), shownLabel),
			clip(sanitize.Text(client.Lang), shownLabel), fmt.Sprint(client.PID), fmt.Sprint(client.UID),
			count(client.Received), count(client.Dropped), ago(s.At.Sub(client.Since)),
		})
	}
	if len(s.Clients) > 0 {
		t.writeTable(rows)
	}
	omitted := max(len(s.Clients)-shownClients, 0) + s.ClientsNotShown
	if omitted > 0 {
		t.line("  %s", t.dim("and "+count(omitted)+" more; --json lists up to 50"))
	}
}

// writeLimits writes how much of the limits for label sets and processes is used in the current export
// interval. It also writes the number of spans with a label that was replaced because of a limit.
func (t *statusText) writeLimits() {
	s := t.current
	t.section("Cardinality", fmt.Sprintf("%s of %s aggregates, %s of %s origins in this interval",
		count(s.Aggregates.Live), count(s.Aggregates.Max), count(s.Origins.Live), count(s.Origins.Max)))
	if text := nonZeroCounts(s.Collapsed); text != "" {
		t.line("  %s", t.warn("spans counted with a replaced label, because it has too many values: "+text))
	}
	t.writeOverflow()
}

// writeOverflow writes a table of the labels that had more values than their budgets allow, in the last
// interval with such labels.
func (t *statusText) writeOverflow() {
	overflow := t.current.Overflow
	if overflow == nil {
		return
	}
	t.line("  labels over their budgets in the interval until %s, without budgets about %s aggregates:",
		overflow.Ended.Local().Format(time.TimeOnly), count(overflow.Keys))
	rows := [][]string{{"SERVICE", "LABEL", "BUDGET", "WANTED", "MOSTLY COLLAPSED"}}
	for i := range overflow.Labels {
		rows = append(rows, overflowCells(&overflow.Labels[i]))
	}
	if len(overflow.Labels) > 0 {
		t.writeTable(rows)
	}
	if overflow.LabelsNotMeasured > 0 {
		t.line("  %s", t.dim("and "+count(overflow.LabelsNotMeasured)+" more labels, which were not measured"))
	}
	t.line("  %s", t.dim("spanstatsd plan proposes flags"))
}

// overflowCells returns the cells of a table row about a label that had more values than its budget allows. The last
// one is the value that was replaced most often.
func overflowCells(l *registry.LabelOverflow) []string {
	mostReplaced := ""
	if len(l.Collapsed) > 0 {
		mostReplaced = l.Collapsed[0].Value // they are sorted by frequency
	}
	return []string{
		clip(sanitize.Text(l.Service), shownLabel), clip(sanitize.Text(l.Label), shownLabel),
		count(l.Budget), "~" + count(l.Wanted), clip(sanitize.Text(mostReplaced), shownLabel),
	}
}

// writeDrainers writes a line for each drainer, a goroutine that reads spans from a ring buffer and
// aggregates them: how full its ring is, and how many spans it has aggregated.
func (t *statusText) writeDrainers() {
	keyPartitions := t.current.Partitions.Partitions // each drainer has one or more of them
	t.section("Drainers", fmt.Sprintf("%d partitions", keyPartitions))
	for i, d := range t.current.Drainers {
		ringUsage := fmt.Sprintf("%s of %s ring slots in use, %s at most",
			count(d.Ring.Used), count(d.Ring.Slots), count(d.Ring.HighWater))
		t.line("  %3d  %s  %s  %s spans aggregated", i, t.ringBar(&d.Ring), ringUsage, count(d.Aggregated))
	}
}

// ringBar draws the current and the highest usage of a ring, in a color for the highest usage.
func (t *statusText) ringBar(ring *status.Ring) string {
	const width = 24
	slots := float64(max(ring.Slots, 1))
	highest := float64(ring.HighWater) / slots
	text := bar(float64(ring.Used)/slots, highest, width)
	switch {
	case highest > .9:
		return t.bad(text)
	case highest > .6:
		return t.warn(text)
	}
	return t.accent(text)
}

// trimLines removes spaces at the ends of lines.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// nonZeroCounts lists the counts that are not 0, sorted by name, for example "expired 3, rejected 1".
func nonZeroCounts(counts map[string]uint64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			parts = append(parts, sanitize.Text(name)+" "+count(counts[name]))
		}
	}
	return strings.Join(parts, ", ")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// clip truncates a text to a number of characters. The last character of a truncated text is "…".
func clip(text string, maxChars int) string {
	if utf8.RuneCountInString(text) <= maxChars {
		return text
	}
	return string([]rune(text)[:maxChars-1]) + "…"
}
