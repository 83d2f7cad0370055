package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/lab/bench"
	"github.com/spf13/cobra"
)

// newBenchRatesCommand returns the command that measures how much publishing costs a process that
// serves requests.
func newBenchRatesCommand(program *string) *cobra.Command {
	c := bench.DefaultRates()
	cmd := &cobra.Command{
		Use:   "rates [flags] [-- flags of run]",
		Short: "Measure the cost of publishing at typical rates of a pod",
		Long: `Measure what publishing through the client costs a process that serves requests of ten
spans each. For each rate, turns with and without publishing alternate. The table has
the medians of the CPU time of the process and of the daemon. Arguments after -- are
passed to the daemon.`,
		Args: daemonArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.Check(); err != nil {
				return commandline.AsUsage(err)
			}
			c.Program, c.Flags, c.Out, c.Log = *program, args, cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			return bench.MeasureRates(ctx, c)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&c.For, "for", c.For, "length of each turn, after a warm-up; 10s is one interval of the "+
		"daemon")
	f.DurationVar(&c.WarmUp, "warm-up", c.WarmUp, "time at the start of each turn that is not measured")
	f.IntVar(&c.Rounds, "rounds", c.Rounds, "number of turns per rate")
	f.Float64SliceVar(&c.Rates, "rates", c.Rates, "rates in spans per second; at 0, the client connects and publishes nothing")
	return cmd
}
