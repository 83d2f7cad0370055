package statustext

import (
	"fmt"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// accounting writes the accounting as a tree with rates, and the spans that clients have lost.
func (t *statusText) accounting() {
	b, note := &t.now.Accounting, "spans since the start"
	if len(t.now.Destinations) > 1 {
		note += "; flushed, pending and unsent at the first destination"
	}
	t.section("Accounting", note)
	row := func(branch, name string, n uint64, value func(*status.Status) uint64, note string) {
		rate := ""
		if r, known := rateSince(t.last, t.now, value); known {
			rate = perSecond(r)
		}
		t.line("  %s%-*s %16s  %10s  %s", t.dim(branch), 16-utf8.RuneCountInString(branch), name, count(n),
			rate, note)
	}
	row("", "received", b.Received, func(s *status.Status) uint64 { return s.Accounting.Received }, t.transit(b))
	row("├ ", "aggregated", b.Aggregated, func(s *status.Status) uint64 { return s.Accounting.Aggregated }, "")
	row("│ ├ ", "flushed", b.Flushed, func(s *status.Status) uint64 { return s.Accounting.Flushed }, "")
	row("│ ├ ", "pending", b.Pending, func(s *status.Status) uint64 { return s.Accounting.Pending },
		t.dim(fmt.Sprintf("%s in tables, %s in payloads", count(b.PendingInTables), count(b.PendingInPayloads))))
	row("│ └ ", "unsent", b.Unsent, func(s *status.Status) uint64 { return s.Accounting.Unsent },
		t.warn(nonZeroCounts(b.UnsentBy)))
	row("└ ", "dropped", b.DroppedTotal(), func(s *status.Status) uint64 { return s.Accounting.DroppedTotal() },
		t.warn(nonZeroCounts(b.Dropped)))
	t.extra("lost in clients", t.now.ClientLost)
}

// seeDoctor tells how to fix a problem.
const seeDoctor = " Run `spanstatsd doctor` for the cause and a fix."

// summary returns the most important message. It does not report an imbalance: a single snapshot can't tell an imbalance
// caused by moving spans from one caused by a bug.
func (t *statusText) summary() string {
	b, trouble, upstreamTrouble := &t.now.Accounting, t.trouble(), t.upstreamTrouble()
	switch lost := b.Lost() + t.mostUnsent(); {
	case b.Received == 0:
		return t.dim("No span was received yet.")
	case lost > 0:
		return t.warn(fmt.Sprintf("%s of %s received spans are lost.", count(lost), count(b.Received)) + seeDoctor)
	case trouble != "":
		return t.warn("No received span is lost yet, but there is a problem: " + trouble + "." + seeDoctor)
	case upstreamTrouble != "":
		return t.warn("No received span is lost, but there is a problem: " + upstreamTrouble + "." + seeDoctor)
	case b.Balanced:
		return t.good("Every received span is accounted for, and none is lost.")
	}
	return t.good("No received span is lost.")
}

// sampled returns a sentence about spans that samplers discarded before the daemon, as far as received spans or the
// metrics of SDKs report it, or "".
func (t *statusText) sampled() string {
	b, sdks := &t.now.Accounting, t.now.SDKs
	switch {
	case b.AdjustedCount > b.Aggregated:
		return t.warn(fmt.Sprintf("The %s counted spans stand for about %s: samplers discarded the others before the "+
			"daemon.", count(b.Aggregated), count(b.AdjustedCount)))
	case sdks != nil && sdks.Sampled < sdks.Started:
		return t.warn(fmt.Sprintf("SDKs report that they sampled %s of %s started spans. The others are not counted here.",
			count(sdks.Sampled), count(sdks.Started)))
	}
	return ""
}

// transit describes how many spans are in the rings.
func (t *statusText) transit(b *status.Accounting) string {
	if b.InTransit <= 0 {
		return ""
	}
	return t.dim(count(b.InTransit) + " in rings")
}

// extra writes counts that are not part of the accounting, if any of them is not 0.
func (t *statusText) extra(name string, counts map[string]uint64) {
	if text := nonZeroCounts(counts); text != "" {
		t.line("  %-16s  %s", name, t.warn(text))
	}
}

// rateSince returns the rate of a count since an earlier status. It returns false if there is no earlier status, or if
// the daemon was restarted in between.
func rateSince(last, now *status.Status, count func(*status.Status) uint64) (perSecond float64, known bool) {
	if last == nil || !last.Started.Equal(now.Started) || !now.At.After(last.At) {
		return 0, false
	}
	return (float64(count(now)) - float64(count(last))) / now.At.Sub(last.At).Seconds(), true
}
