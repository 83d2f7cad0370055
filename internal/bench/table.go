package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

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

// AllConfig is what to measure of every workload.
type AllConfig struct {
	For      time.Duration // of each
	Flags    []string      // for the daemon
	Program  string
	Out, Log io.Writer
}

// config is a run of one workload.
func (c *AllConfig) config(name string) Config {
	config := DefaultConfig()
	config.Workload = name
	config.For, config.Flags, config.Program, config.Log = c.For, c.Flags, c.Program, c.Log
	return config
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

// All measures every workload, keys by their bytes and by numbers, as fast as it goes,
// and then the client library at a rate at which it refuses nothing. It prints a table.
func All(ctx context.Context, c AllConfig) error {
	t := newTable(c.Out, "workload", "tracer", "keys", "accepted/s", "dropped", "daemon CPU ns", "in the kernel", "tracer CPU ns", "allocations", "peak MiB", "collector", "to table, p50 / p99", "publish, p50 / p99")
	var runs []Config
	for _, name := range workload.Names() {
		runs = append(runs, c.config(name))
	}
	client := c.config(workload.Stable)
	client.Tracer, client.Rate = Client, clientRate
	for _, config := range append(runs, client) {
		for _, config.Keys = range []string{Raw, Numbered} {
			r, err := exactly(ctx, config)
			if err != nil {
				return err
			}
			t.row("`"+r.Workload+"`", r.Tracer, r.Keys, thousands(r.SpansAcceptedPerSecond), thousands(float64(r.Books.Dropped)),
				whole(r.DaemonCPU), whole(r.DaemonSystemCPU), whole(r.TracerCPU), fmt.Sprintf("%.4f", r.DaemonAllocs), mebibytes(r.DaemonPeakRSS),
				fmt.Sprintf("%.2f %%", 100*r.DaemonGCShare), r.PublishToTable.pair(), r.Publish.pair())
		}
	}
	return t.flush()
}

// AllTraces measures the workload of traces with every recording, and prints a table.
func AllTraces(ctx context.Context, c AllConfig) error {
	t := newTable(c.Out, "requests", "spans each", "counted", "bytes a span", "handing on, daemon CPU ns", "and counting", "counting adds", "counting alone", "allocations, alone", "answer, p50 / p99", "and counting", "left to the agent")
	for _, format := range Recorded {
		config := c.config(Traces)
		config.Format = format
		report, err := exactly(ctx, config)
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

func mebibytes(bytes uint64) string { return whole(float64(bytes) / (1 << 20)) }

// pair is the median and the slowest hundredth.
func (t Times) pair() string { return nanoseconds(t.P50) + " / " + nanoseconds(t.P99) }
