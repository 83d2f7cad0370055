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

// Row is one line of a report: a service and a resource.
type Row struct {
	Service  string  `json:"service"`
	Resource string  `json:"resource"`
	Hits     uint64  `json:"hits"`
	Errors   uint64  `json:"errors"`
	P50      float64 `json:"p50_ms"`
	P95      float64 `json:"p95_ms"`
	P99      float64 `json:"p99_ms"`
}

// newRow makes a row of counts and of quantiles in nanoseconds.
func newRow(service, resource string, hits, errors uint64, quantile func(float64) float64) Row {
	return Row{
		Service: service, Resource: resource, Hits: hits, Errors: errors,
		P50: milliseconds(quantile(0.5)), P95: milliseconds(quantile(0.95)),
		P99: milliseconds(quantile(0.99)),
	}
}

// busiestFirst are the rows of a report.
func busiestFirst(r report) []Row {
	rows := r.rows()
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), strings.Compare(a.Service, b.Service),
			strings.Compare(a.Resource, b.Resource))
	})
	return rows
}

func milliseconds(nanoseconds float64) float64 {
	return float64(int64(nanoseconds/1e3+0.5)) / 1e3
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
