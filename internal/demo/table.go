package demo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/standin"
	"google.golang.org/protobuf/proto"
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

	sketch *ddsketch.DDSketch
}

// report is what the agent received of one flush, by service and resource.
type report struct {
	rows map[[2]string]*Row
}

func newReport() *report { return &report{rows: map[[2]string]*Row{}} }

// add takes a payload's groups in. The payload has passed the agent's checks.
func (r *report) add(payload *standin.Payload) error {
	for _, bucket := range payload.Stats {
		for i := range bucket.Stats {
			group := &bucket.Stats[i]
			row := r.rows[[2]string{group.Service, group.Resource}]
			if row == nil {
				row = &Row{Service: group.Service, Resource: group.Resource}
				r.rows[[2]string{group.Service, group.Resource}] = row
			}
			row.Hits += group.Hits
			row.Errors += group.Errors
			for _, summary := range [][]byte{group.OkSummary, group.ErrorSummary} {
				if err := row.merge(summary); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *Row) merge(summary []byte) error {
	var message sketchpb.DDSketch
	if err := proto.Unmarshal(summary, &message); err != nil {
		return fmt.Errorf("decode sketch: %w", err)
	}
	sketch, err := ddsketch.FromProto(&message)
	if err != nil {
		return fmt.Errorf("decode sketch: %w", err)
	}
	if r.sketch == nil {
		r.sketch = sketch
		return nil
	}
	return r.sketch.MergeWith(sketch)
}

// sorted are the rows with their quantiles, the busiest first.
func (r *report) sorted() []Row {
	rows := make([]Row, 0, len(r.rows))
	for _, row := range r.rows {
		if values, err := row.sketch.GetValuesAtQuantiles([]float64{0.5, 0.95, 0.99}); err == nil {
			row.P50, row.P95, row.P99 = milliseconds(values[0]), milliseconds(values[1]), milliseconds(values[2])
		}
		rows = append(rows, *row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Hits, a.Hits), strings.Compare(a.Service, b.Service), strings.Compare(a.Resource, b.Resource))
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
			row.Service, row.Resource, row.Hits, row.Errors, readable(row.P50), readable(row.P95), readable(row.P99))
	}
	table.Flush()
	fmt.Fprintf(w, "\nbooks: received %d = aggregated %d + dropped %d;  aggregated = flushed %d + unsent %d + held %d\n",
		books.Received, books.Aggregated, books.DroppedTotal(), books.Flushed, books.Unsent, books.Held)
}

// readable is a duration with three significant figures.
func readable(ms float64) string {
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.2f s", ms/1000)
	case ms >= 100:
		return fmt.Sprintf("%.0f ms", ms)
	case ms >= 10:
		return fmt.Sprintf("%.1f ms", ms)
	default:
		return fmt.Sprintf("%.2f ms", ms)
	}
}
