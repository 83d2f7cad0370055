package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Row is one line of the report on exported payloads: a service and a resource.
type Row struct {
	Service  string  `json:"service"`
	Resource string  `json:"resource"`
	Hits     uint64  `json:"hits"`
	Errors   uint64  `json:"errors"`
	P50      float64 `json:"p50_ms"`
	P95      float64 `json:"p95_ms"`
	P99      float64 `json:"p99_ms"`
}

// newRow returns a row. Quantiles are in nanoseconds.
func newRow(service, resource string, hits, errors uint64, quantile func(float64) float64) Row {
	return Row{
		Service: service, Resource: resource, Hits: hits, Errors: errors,
		P50: milliseconds(quantile(0.5)), P95: milliseconds(quantile(0.95)),
		P99: milliseconds(quantile(0.99)),
	}
}

func milliseconds(nanoseconds float64) float64 {
	return float64(int64(nanoseconds/1e3+0.5)) / 1e3
}

// rowsTable returns the rows sorted by hits, the busiest first.
func rowsTable(rows []Row) table {
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), strings.Compare(a.Service, b.Service),
			strings.Compare(a.Resource, b.Resource))
	})
	t := table{header: "SERVICE\tRESOURCE\tHITS\tERRORS\tP50\tP95\tP99", rows: rows}
	for _, row := range rows {
		t.lines = append(t.lines, fmt.Sprintf("%s\t%s\t%d\t%d\t%s\t%s\t%s", row.Service, row.Resource,
			row.Hits, row.Errors, readable(row.P50), readable(row.P95), readable(row.P99)))
	}
	return t
}
