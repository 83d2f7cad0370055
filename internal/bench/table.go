package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// table is one in the form of the documentation, its columns lined up for a terminal.
type table struct{ out *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)}
	t.row(columns...)
	t.row(strings.Split(strings.Repeat("---,", len(columns)-1)+"---", ",")...)
	return t
}

func (t table) row(cells ...string) {
	fmt.Fprintf(t.out, "| %s\t|\n", strings.Join(cells, "\t| "))
}

// flush writes it out.
func (t table) flush() error {
	if err := t.out.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// exactly runs a measurement that must not lose spans out of the books.
func exactly(ctx context.Context, config Config) (*Report, error) {
	r, err := Run(ctx, config)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && !r.Holds() {
		err = fmt.Errorf("the figures do not agree: %+v", *r)
	}
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", config.Workload, err)
	}
	return r, nil
}

// clientRate is spans a second that the client has buffers for, whatever else the
// machine does.
const clientRate = 500_000

// costColumns are what costCells fills.
var costColumns = []string{"accepted/s", "dropped", "daemon CPU ns", "in the kernel", "tracer CPU ns", "allocations", "peak MiB"}

func (r *Report) costCells() []string {
	return []string{
		thousands(r.SpansAcceptedPerSecond), thousands(float64(r.Books.Dropped)), whole(r.DaemonCPU), whole(r.DaemonSystemCPU),
		whole(r.TracerCPU), fmt.Sprintf("%.4f", r.DaemonAllocs), whole(float64(r.DaemonPeakRSS) / (1 << 20)),
	}
}

// All measures every workload, keys by their bytes and by numbers, as fast as it goes,
// and then the client library at a rate at which it refuses nothing. It prints a table.
func All(ctx context.Context, c Config) error {
	columns := slices.Concat([]string{"workload", "tracer", "keys"}, costColumns, []string{"collector", "to table, p50 / p99", "publish, p50 / p99"})
	t := newTable(c.Out, columns...)
	for _, name := range append(workload.Names(), Client) {
		if c.Workload = name; name == Client {
			c.Workload, c.Tracer, c.Rate = workload.Stable, Client, clientRate
		}
		for _, c.Keys = range []string{Raw, Numbered} {
			r, err := exactly(ctx, c)
			if err != nil {
				return err
			}
			t.row(slices.Concat([]string{"`" + r.Workload + "`", r.Tracer, r.Keys}, r.costCells(),
				[]string{fmt.Sprintf("%.2f %%", 100*r.DaemonGCShare), r.PublishToTable.pair(), r.Publish.pair()})...)
		}
	}
	return t.flush()
}

// AllTraces measures the workload of traces with every recording, and prints a table.
func AllTraces(ctx context.Context, c Config) error {
	t := newTable(c.Out, "requests", "spans each", "counted", "bytes a span", "handing on, daemon CPU ns", "and counting", "counting adds", "counting alone", "allocations, alone", "answer, p50 / p99", "and counting", "left to the agent")
	c.Workload = Traces
	for _, c.Format = range Recorded {
		report, err := exactly(ctx, c)
		if err != nil {
			return err
		}
		r := report.Traces
		t.row(r.Format, fmt.Sprint(r.SpansPerRequest), fmt.Sprint(r.CountedPerRequest), whole(r.BytesPerSpan), whole(r.Proxied.CPU), whole(r.Counted.CPU),
			whole(r.Counting.AddedCPU), whole(r.Counting.CPU), fmt.Sprintf("%.4f", r.Counting.Allocs), r.Proxied.Answer.pair(), r.Counted.Answer.pair(), fmt.Sprint(r.LeftToAgent))
	}
	return t.flush()
}

func whole(n float64) string { return fmt.Sprintf("%.0f", n) }

// pair is the median and the slowest hundredth.
func (t Times) pair() string { return nanoseconds(t.P50) + " / " + nanoseconds(t.P99) }
