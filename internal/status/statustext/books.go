package statustext

import (
	"fmt"
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// books writes the accounting as a tree with rates, and counts that are not part of it.
func (t *statusText) books() {
	b := &t.now.Books
	t.line("%s\n", t.summary(b))
	row := func(branch, name string, n uint64, value func(*status.Status) uint64, note string) {
		rate := ""
		if r, known := rateSince(t.last, t.now, value); known {
			rate = perSecond(r)
		}
		t.line("  %s%-*s %16s  %10s  %s", t.dim(branch), 16-utf8.RuneCountInString(branch), name, count(n),
			rate, note)
	}
	row("", "received", b.Received, func(s *status.Status) uint64 { return s.Books.Received }, t.transit(b))
	row("├ ", "aggregated", b.Aggregated, func(s *status.Status) uint64 { return s.Books.Aggregated }, "")
	row("│ ├ ", "flushed", b.Flushed, func(s *status.Status) uint64 { return s.Books.Flushed }, "")
	row("│ ├ ", "held", b.Held, func(s *status.Status) uint64 { return s.Books.Held },
		t.dim(fmt.Sprintf("%s in tables, %s in payloads", count(b.HeldInTables), count(b.HeldInPayloads))))
	row("│ └ ", "unsent", b.Unsent, func(s *status.Status) uint64 { return s.Books.Unsent },
		t.warn(nonZeroCounts(b.UnsentBy)))
	row("└ ", "dropped", b.DroppedTotal(), func(s *status.Status) uint64 { return s.Books.DroppedTotal() },
		t.warn(nonZeroCounts(b.Dropped)))
	t.extra("collapsed", t.now.Collapsed)
	t.extra("lost by tracers", t.now.ClientLost)
}

// summary returns the most important message. It does not report an imbalance: a single snapshot can't tell an imbalance
// caused by moving spans from one caused by a bug.
func (t *statusText) summary(b *status.Books) string {
	trouble, forwardTrouble := t.trouble(), t.forwardTrouble()
	switch lost := b.DroppedTotal() + t.mostUnsent(); {
	case b.Received == 0:
		return t.dim("No span has come yet.")
	case lost > 0:
		return t.warn(
			fmt.Sprintf("%s of %s spans are lost, by the reasons below.", count(lost), count(b.Received)),
		)
	case trouble != "":
		return t.warn("No span is lost yet, but the " + trouble + ".")
	case forwardTrouble != "":
		return t.warn("No span is lost, but the " + forwardTrouble + ".")
	case b.Balanced:
		return t.good("Every span is accounted for, and none is lost.")
	}
	return t.good("No span is lost.")
}

// transit describes how many spans are in the rings.
func (t *statusText) transit(b *status.Books) string {
	if b.InTransit <= 0 {
		return ""
	}
	return t.dim(count(b.InTransit) + " on their way through the rings")
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
