package bench

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// AllConfig is what to measure of every workload.
type AllConfig struct {
	For      time.Duration // of each
	Flags    []string      // for the daemon
	Program  string
	Out, Log io.Writer
}

// All measures every workload, keys by their bytes and by numbers, as fast as it
// goes, and then the client library at a rate that it does not have to refuse
// anything at. It prints a table.
func All(ctx context.Context, c AllConfig) error {
	table := tabwriter.NewWriter(c.Out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| workload\t| tracer\t| keys\t| accepted/s\t| dropped\t| daemon CPU ns\t| in the kernel\t| tracer CPU ns\t| allocations\t| peak MiB\t| collector\t| to table, p50 / p99\t| publish, p50 / p99\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, name := range workload.Names() {
		for _, keys := range []string{Raw, Numbered} {
			if err := c.row(ctx, table, name, Wire, keys, 0); err != nil {
				return err
			}
		}
	}
	for _, keys := range []string{Raw, Numbered} {
		if err := c.row(ctx, table, workload.Stable, Client, keys, clientRate); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// clientRate is spans a second that the client has buffers for, whatever else
// the machine does.
const clientRate = 500_000

func (c *AllConfig) row(ctx context.Context, table io.Writer, name, tracer, keys string, rate float64) error {
	config := DefaultConfig()
	config.Workload, config.Tracer, config.Keys, config.Rate = name, tracer, keys, rate
	config.For, config.Flags, config.Program, config.Log = c.For, c.Flags, c.Program, c.Log
	r, err := measure(ctx, config)
	if err != nil {
		return fmt.Errorf("measure %s: %w", name, err)
	}
	fmt.Fprintf(table, "| `%s`\t| %s\t| %s\t| %s\t| %s\t| %.0f\t| %.0f\t| %.0f\t| %.4f\t| %.0f\t| %.2f %%\t| %s / %s\t| %s / %s\t|\n",
		name, tracer, keys, thousands(r.SpansAcceptedPerSecond), thousands(float64(r.Books.Dropped)),
		r.DaemonCPU, r.DaemonSystemCPU, r.TracerCPU, r.DaemonAllocs, float64(r.DaemonPeakRSS)/(1<<20), 100*r.DaemonGCShare,
		nanoseconds(r.PublishToTable.P50), nanoseconds(r.PublishToTable.P99), nanoseconds(r.Publish.P50), nanoseconds(r.Publish.P99))
	return nil
}
