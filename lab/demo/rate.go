package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rate is one line of the report on scraped metrics: requests of a route, and their latency.
type Rate struct {
	Service string  `json:"service"`
	Route   string  `json:"route"`
	Rate    float64 `json:"per_second"`
	Errors  float64 `json:"errors_per_second"`
	P95     float64 `json:"p95_ms"`
}

// ratesReport holds the latest rates. Each list of rates contains all routes.
type ratesReport struct{ rates []Rate }

func (r *ratesReport) add(arrived any) { r.rates = arrived.([]Rate) }

func (r *ratesReport) table() table {
	slices.SortFunc(r.rates, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.Rate, a.Rate), strings.Compare(a.Service, b.Service),
			strings.Compare(a.Route, b.Route))
	})
	t := table{header: "SERVICE\tROUTE\tREQUESTS/S\tERRORS/S\tP95", rows: r.rates}
	for _, one := range r.rates {
		t.lines = append(t.lines, fmt.Sprintf("%s\t%s\t%.1f\t%.2f\t%s", one.Service, one.Route, one.Rate,
			one.Errors, readable(one.P95)))
	}
	return t
}
