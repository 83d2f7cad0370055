package bench

import (
	"context"
	"fmt"
	"text/tabwriter"
)

// AllTraces measures the workload of traces with every recording, and prints a table.
func AllTraces(ctx context.Context, c AllConfig) error {
	table := tabwriter.NewWriter(c.Out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| requests\t| spans each\t| counted\t| bytes a span\t| handing on, daemon CPU ns\t| and counting\t| counting adds\t| counting alone\t| allocations, alone\t| answer, p50 / p99\t| and counting\t| left to the agent\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, format := range Recorded {
		config := DefaultConfig()
		config.Workload, config.Format = Traces, format
		config.For, config.Flags, config.Program, config.Log = c.For, c.Flags, c.Program, c.Log
		r, err := measure(ctx, config)
		if err != nil {
			return fmt.Errorf("measure traces in %s: %w", format, err)
		}
		t := r.Traces
		fmt.Fprintf(table, "| %s\t| %d\t| %d\t| %.0f\t| %.0f\t| %.0f\t| %.0f\t| %.0f\t| %.4f\t| %s / %s\t| %s / %s\t| %d\t|\n",
			t.Format, t.SpansPerRequest, t.CountedPerRequest, t.BytesPerSpan, t.Proxied.CPU, t.Counted.CPU, t.Counting.AddedCPU,
			t.Counting.CPU, t.Counting.Allocs, nanoseconds(t.Proxied.Answer.P50), nanoseconds(t.Proxied.Answer.P99),
			nanoseconds(t.Counted.Answer.P50), nanoseconds(t.Counted.Answer.P99), t.LeftToAgent)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
