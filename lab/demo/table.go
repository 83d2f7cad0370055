package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/health"
)

// busiestFirst are the rows of a report.
func busiestFirst(r report) []Row {
	rows := r.rows()
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), strings.Compare(a.Service, b.Service),
			strings.Compare(a.Resource, b.Resource))
	})
	return rows
}

// writeTable shows a report and the books to a person.
func writeTable(w io.Writer, flush int, at time.Time, rows []Row, books health.Books) {
	fmt.Fprintf(w, "\nflush %d at %s\n\n", flush, at.Format("15:04:05"))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SERVICE\tRESOURCE\tHITS\tERRORS\tP50\tP95\tP99")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n",
			row.Service, row.Resource, row.Hits, row.Errors, readable(row.P50), readable(row.P95),
			readable(row.P99))
	}
	table.Flush()
	fmt.Fprintf(w, "\nbooks: received %d = aggregated %d + dropped %d;  aggregated = flushed %d + unsent "+
		"%d + held %d\n",
		books.Received, books.Aggregated, books.DroppedTotal(), books.Flushed, books.Unsent, books.Held)
}

// readable is a duration with three significant figures.
func readable(ms float64) string {
	if ms >= 1000 {
		return fmt.Sprintf("%.3g s", ms/1000)
	}
	return fmt.Sprintf("%.3g ms", ms)
}
