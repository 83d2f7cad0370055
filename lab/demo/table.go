package demo

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// writeTable writes a report and the daemon's accounting in human-readable form.
func writeTable(w io.Writer, flush int, at time.Time, t table, accounting status.Accounting) {
	fmt.Fprintf(w, "\nflush %d at %s\n\n", flush, at.Format("15:04:05"))
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, t.header)
	for _, line := range t.lines {
		fmt.Fprintln(columns, line)
	}
	columns.Flush()
	fmt.Fprintf(w, "\naccounting: received %d = aggregated %d + dropped %d;  aggregated = flushed %d + unsent "+
		"%d + pending %d\n",
		accounting.Received, accounting.Aggregated, accounting.DroppedTotal(), accounting.Flushed, accounting.Unsent, accounting.Pending)
}

// readable formats a duration with three significant digits.
func readable(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.3g s", ms/1000)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
