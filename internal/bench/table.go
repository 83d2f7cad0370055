package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// fact is a figure of a report with its name, which heads a column of a table.
type fact struct{ name, value string }

// table is one in the form of the documentation, its columns lined up for a terminal.
type table struct {
	out     *tabwriter.Writer
	hasHead bool
}

func newTable(out io.Writer) *table { return &table{out: tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)} }

// row writes the values of some facts, and before the first row their names.
func (t *table) row(facts []fact) {
	line := func(cell func(fact) string) {
		for _, f := range facts {
			fmt.Fprintf(t.out, "| %s\t", cell(f))
		}
		fmt.Fprintln(t.out, "|")
	}
	if !t.hasHead {
		line(func(f fact) string { return f.name })
		line(func(fact) string { return "---" })
		t.hasHead = true
	}
	line(func(f fact) string { return f.value })
}

// flush writes it out.
func (t *table) flush() error {
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

// All measures every workload, keys by their bytes and by numbers, as fast as it goes,
// and then the client library at a rate at which it refuses nothing. It prints a table.
func All(ctx context.Context, c Config) error {
	t := newTable(c.Out)
	for _, name := range append(workload.Names(), Client) {
		if c.Workload = name; name == Client {
			c.Workload, c.Tracer, c.Rate = workload.Stable, Client, clientRate
		}
		for _, c.Keys = range []string{Raw, Numbered} {
			r, err := exactly(ctx, c)
			if err != nil {
				return err
			}
			sent := []fact{{"workload", "`" + r.Workload + "`"}, {"tracer", r.Tracer}, {"keys", r.Keys}}
			t.row(slices.Concat(sent, r.costs(), r.times()))
		}
	}
	return t.flush()
}

// AllTraces measures the workload of traces with every recording, and prints a table.
func AllTraces(ctx context.Context, c Config) error {
	t := newTable(c.Out)
	c.Workload = Traces
	for _, c.Format = range Recorded {
		r, err := exactly(ctx, c)
		if err != nil {
			return err
		}
		t.row(r.Traces.facts())
	}
	return t.flush()
}
