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
		Short: "Measure what publishing costs at the rates that pods have",
		Long: `Measure what publishing through the client costs a process that serves requests of ten
spans, at each of some rates: its processor time with publishing and without, in turns,
and that of the daemon meanwhile. Prints a table of medians. Arguments after -- go to the
daemon.`,
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
	f.DurationVar(&c.WarmUp, "warm-up", c.WarmUp, "warm-up of a turn, not measured")
	f.IntVar(&c.Rounds, "rounds", c.Rounds, "turns of each")
	f.Float64SliceVar(&c.Rates, "rates", c.Rates, "spans a second; 0: connected, and nothing is published")
	return cmd
}
