package main

import (
	"log/slog"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/lab/demo"
	"github.com/spf13/cobra"
)

// maxDemoRate limits the rate, so that a demo does not become a benchmark of its own tracers.
const maxDemoRate = 1_000_000

func newDemoCommand() *cobra.Command {
	config := demo.Config{Version: version}
	level := slog.LevelWarn
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show how the spans of a small web shop are counted",
		Long: `Start a stand-in agent or Collector, the daemon and the tracers of a small web shop, and
print what it receives: after each flush a table by service and resource, and the daemon's
accounting. Nothing else is needed. With --destination prometheus, the daemon is scraped, by
Prometheus if it is in PATH, and the table has rates and percentiles by route.
Exits with 0 only if the accounting balances and the destination counted exactly the spans
that the tracers sent.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config.Rate < 1 || config.Rate > maxDemoRate {
				return commandline.Mistake("parse --rate: %d is not between 1 and %d spans per second",
					config.Rate, maxDemoRate)
			}
			if config.For < 0 {
				return commandline.Mistake("parse --for: %s is negative", config.For)
			}
			if !slices.Contains(demo.Destinations, config.Destination) {
				return commandline.Mistake("parse --destination: %q is not one of %s", config.Destination,
					strings.Join(demo.Destinations, ", "))
			}
			config.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: level}))
			config.Out = cmd.OutOrStdout()
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			return demo.Run(ctx, config)
		},
	}
	f := cmd.Flags()
	f.StringVar(&config.Destination, "destination", demo.Destinations[0],
		"destination of the statistics: agent for a stand-in for the Datadog agent, otlp for a stand-in for a "+
			"Collector, or prometheus to scrape them")
	f.DurationVar(&config.For, "for", 0, "duration of the demo, such as 15s (default: until it is interrupted)")
	f.IntVar(&config.Rate, "rate", 2000, "approximate number of spans per second")
	f.BoolVar(&config.JSON, "json", false, "print one JSON object per flush, then one with the final accounting")
	f.TextVar(&level, "log-level", level, "minimum level to log of the daemon: debug, info, warn, error")
	return cmd
}
