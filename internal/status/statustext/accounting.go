package statustext

import (
	"fmt"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// writeAccounting writes how many spans were received, and how many of them were aggregated, dropped and
// delivered, as a tree with rates. It also writes the number of spans that were lost in clients.
func (t *statusText) writeAccounting() {
	spans := &t.current.Accounting
	note := "spans since the start"
	if len(t.current.Destinations) > 1 {
		note += "; flushed, pending and unsent at the first destination"
	}
	t.section("Accounting", note)
	t.writeAccountingRow("", "received", receivedSpans, t.ringNote())
	t.writeAccountingRow("├ ", "aggregated", aggregatedSpans, "")
	t.writeAccountingRow("│ ├ ", "flushed", flushedSpans, "")
	t.writeAccountingRow("│ ├ ", "pending", pendingSpans, t.dim(fmt.Sprintf("%s in tables, %s in payloads",
		count(spans.PendingInTables), count(spans.PendingInPayloads))))
	t.writeAccountingRow("│ └ ", "unsent", unsentSpans, t.warn(nonZeroCounts(spans.UnsentBy)))
	t.writeAccountingRow("└ ", "dropped", droppedSpans, t.warn(nonZeroCounts(spans.Dropped)))
	if lost := nonZeroCounts(t.current.ClientLost); lost != "" {
		t.line("  %-16s  %s", "lost in clients", t.warn(lost))
	}
}

// Counts of the accounting.
func receivedSpans(s *status.Status) uint64   { return s.Accounting.Received }
func aggregatedSpans(s *status.Status) uint64 { return s.Accounting.Aggregated }
func flushedSpans(s *status.Status) uint64    { return s.Accounting.Flushed }
func pendingSpans(s *status.Status) uint64    { return s.Accounting.Pending }
func unsentSpans(s *status.Status) uint64     { return s.Accounting.Unsent }
func droppedSpans(s *status.Status) uint64    { return s.Accounting.DroppedTotal() }

// writeAccountingRow writes one line of a tree of counts: name, the value of the current status, its rate,
// and a note. branch draws the tree to the left of the name, for example "├ ".
func (t *statusText) writeAccountingRow(branch, name string, value func(*status.Status) uint64, note string) {
	const branchAndNameColumns = 16
	nameColumns := branchAndNameColumns - utf8.RuneCountInString(branch)
	paddedName := fmt.Sprintf("%-*s", nameColumns, name)
	rate := ""
	if perSecond, isKnown := rateSince(t.previous, t.current, value); isKnown {
		rate = rateText(perSecond)
	}
	t.line("  %s%s %16s  %10s  %s", t.dim(branch), paddedName, count(value(t.current)), rate, note)
}

// seeDoctor is the last sentence of a message about a problem.
const seeDoctor = " Run `spanstatsd doctor` for the cause and a fix."

// summary returns a sentence about the most important problem, or one that there is none. Lost spans
// are more important than a destination with a problem, and this is more important than an upstream
// with a problem.
func (t *statusText) summary() string {
	spans := &t.current.Accounting
	if spans.Received == 0 {
		return t.dim("No span was received yet.")
	}
	lost := spans.Lost()   // before they were aggregated
	lost += t.mostUnsent() // aggregated, but not delivered to the destination that lacks the most spans
	if lost > 0 {
		return t.warn(fmt.Sprintf("%s of %s received spans are lost.", count(lost), count(spans.Received)) + seeDoctor)
	}
	if problem := t.destinationProblem(); problem != "" {
		return t.warn("No received span is lost yet, but there is a problem: " + problem + "." + seeDoctor)
	}
	if problem := t.upstreamProblem(); problem != "" {
		return t.warn("No received span is lost, but there is a problem: " + problem + "." + seeDoctor)
	}
	if spans.Balanced {
		return t.good("Every received span is accounted for, and none is lost.")
	}
	return t.good("No received span is lost.")
}

// samplingNote returns a sentence about spans that a sampler has discarded before they reached the
// daemon. It returns "" if neither received spans nor the metrics of SDKs indicate a sampler.
func (t *statusText) samplingNote() string {
	spans := &t.current.Accounting
	if spans.AdjustedCount > spans.Aggregated {
		return t.warn(fmt.Sprintf("The %s counted spans stand for about %s: samplers discarded the others before the "+
			"daemon.", count(spans.Aggregated), count(spans.AdjustedCount)))
	}
	sdks := t.current.SDKs
	if sdks != nil && sdks.Sampled < sdks.Started {
		return t.warn(fmt.Sprintf("SDKs report that they sampled %s of %s started spans. The others are not counted here.",
			count(sdks.Sampled), count(sdks.Started)))
	}
	return ""
}

// ringNote returns a note with the number of received spans that are neither aggregated nor dropped
// yet. They wait in rings, the queues in front of the aggregation. It returns "" if there are none.
func (t *statusText) ringNote() string {
	inTransit := t.current.Accounting.InTransit
	if inTransit <= 0 {
		return ""
	}
	return t.dim(count(inTransit) + " in rings")
}

// rateSince returns the increase per second of a count between two statuses. isKnown is false if there
// is no earlier status, or if the daemon was restarted between the two.
func rateSince(earlier, current *status.Status, count func(*status.Status) uint64) (perSecond float64, isKnown bool) {
	if earlier == nil || !earlier.Started.Equal(current.Started) {
		return 0, false
	}
	elapsed := current.At.Sub(earlier.At)
	if elapsed <= 0 {
		return 0, false
	}
	increase := float64(count(current)) - float64(count(earlier))
	return increase / elapsed.Seconds(), true
}
