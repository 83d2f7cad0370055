package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/lab/bench"
	"github.com/spanstatsd/spanstatsd/lab/bench/relay"
	"github.com/spanstatsd/spanstatsd/lab/workload"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// benchOptions holds the flags of bench.
type benchOptions struct {
	config bench.Config
	json   bool
}

func (o *benchOptions) addFlags(f *pflag.FlagSet) {
	c := &o.config
	f.StringVar(&c.Workload, "workload", c.Workload,
		"spans to send: stable, pool, skewed, burst, adversarial, unique-resource, unique-peer, "+
			"flood:SHAPE or flood:SHAPE:5%, see above, or traces over the agent's API")
	f.StringVar(&c.Format, "format", c.Format,
		"format of the recorded request for --workload traces: "+strings.Join(bench.Recorded, ", "))
	f.IntVar(&c.KeyCount, "key-count", 0, "number of keys of the workload stable, instead of --workload")
	f.Uint64Var(&c.Spans, "spans", 0, "total number of spans to send (default: as many as --for allows)")
	f.DurationVar(&c.For, "for", c.For, "how long to send; 0 with --spans")
	f.DurationVar(&c.WarmUp, "warm-up", 0, "time at the start of --for that the costs exclude, like the report at the end")
	f.IntVar(&c.CPUs, "cpus", 0, "number of CPUs for the daemon and the tracers together (default: all)")
	f.Float64Var(&c.Rate, "rate", 0, "total rate in spans per second (default: as fast as possible)")
	f.StringVar(&c.Tracer, "tracer", c.Tracer,
		"sender: wire for messages encoded in advance, or client for the client library")
	f.StringVar(&c.Keys, "keys", c.Keys, "encoding of keys: raw or numbered")
	f.IntVar(&c.Batch, "batch", c.Batch, "number of spans that are published together")
	f.IntVar(&c.Producers, "producers", c.Producers, "number of tracers, each a process")
	f.IntVar(&c.Connections, "connections", 0, "number of connections of all tracers (default: one per tracer)")
	f.IntVar(&c.Origins, "origins", c.Origins, "number of origins of all connections")
	f.StringVar(&c.Daemon, "daemon", "", "HTTP address of a running daemon, such as "+
		"http://127.0.0.1:9126 (default: a daemon is started)")
	f.StringVar(&c.Socket, "socket", c.Socket, "socket of the daemon in --daemon")
	f.DurationVar(&c.Every, "every", 0, "interval between progress lines; 0 for none")
	f.StringVar(&c.Profile, "profile", "", "write the daemon's CPU profile to this file; a running daemon needs --debug")
	f.BoolVar(&o.json, "json", false, "print one JSON object")
}

func newBenchCommand() *cobra.Command {
	o := &benchOptions{config: bench.DefaultConfig()}
	program := &o.config.Program
	cmd := &cobra.Command{
		Use:   "bench [flags] [-- flags of run]",
		Short: "Measure the cost of a span in the daemon",
		Long: `Start a daemon, a stand-in agent and tracers as separate processes, send spans, and
report their cost: throughput, CPU time, allocations, memory, latency, drops, and the
daemon's accounting. Arguments after -- are passed to the daemon:
spanstatsd-lab bench --workload pool -- --max-aggregates=2048

In a flood, each key occurs once: --workload flood:urls. With a share, flood:urls:5%,
the other spans have ` + strconv.Itoa(workload.HonestKeys) + ` recurring keys. The shapes of floods are
` + strings.Join(workload.Shapes()[:8], ", ") + `,
` + strings.Join(workload.Shapes()[8:], ", ") + `.

Exits with 0 only if the accounting balances and the agent counted exactly the spans
that the daemon accepted.`,
		Args: daemonArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.config.Flags = args
			return o.run(cmd)
		},
	}
	o.addFlags(cmd.Flags())
	cmd.PersistentFlags().StringVar(program, "program", "",
		"path of the daemon's program (default: spanstatsd in the directory of this program, or in PATH)")
	all, _ := newBenchTable(program, bench.All, "all", "Measure every workload, and print a table",
		`Measure every workload at full speed with raw and with numbered keys, and the client
library at a fixed rate. Arguments after -- are passed to the daemon; with
--buffer=block it drops nothing, and the measured rate is its maximum.`)
	traces, tracesConfig := newBenchTable(program, bench.AllTraces, "traces",
		"Measure traces over the agent's API in every format, and print a table",
		`Measure the workload traces with a recorded request of each format: the cost of
forwarding it, in the daemon and in a relay that does nothing else, the cost that
counting its spans adds, and the cost of counting alone. With --rate, also the cost per
second at that rate. Arguments after -- are passed to the daemon.`)
	traces.Flags().Float64Var(&tracesConfig.Rate, "rate", 0, "rate in spans per second (default: as fast as possible)")
	cmd.AddCommand(all, traces, newBenchScaleCommand(program), newBenchRatesCommand(program),
		newBenchTracerCommand(), newBenchRelayCommand())
	return cmd
}

// complete converts the flags to a configuration. The error names a flag that cannot be used.
func (o *benchOptions) complete(cmd *cobra.Command) error {
	c := &o.config
	if c.Connections == 0 {
		c.Connections = c.Producers
	}
	if c.Spans > 0 && !cmd.Flags().Changed("for") {
		c.For = 0
	}
	if err := c.Check(); err != nil {
		return commandline.AsUsage(err)
	}
	c.Out, c.Log = cmd.OutOrStdout(), cmd.ErrOrStderr()
	if o.json {
		c.Out = cmd.ErrOrStderr()
	}
	return nil
}

func (o *benchOptions) run(cmd *cobra.Command) error {
	if err := o.complete(cmd); err != nil {
		return err
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	report, err := bench.Run(ctx, o.config)
	if err != nil {
		return err
	}
	if o.json {
		err = json.NewEncoder(cmd.OutOrStdout()).Encode(report)
	} else {
		report.WriteText(cmd.OutOrStdout())
	}
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if !report.Holds() {
		return errors.New("run bench: the counts differ, or something failed; see the report")
	}
	return nil
}

// newBenchTable returns a command that runs the same measurement for several configurations and
// prints a table.
func newBenchTable(program *string, measure func(context.Context, bench.Config) error, name, short,
	long string,
) (*cobra.Command, *bench.Config) {
	c := new(bench.Config)
	*c = bench.DefaultConfig()
	cmd := &cobra.Command{
		Use: name + " [flags] [-- flags of run]", Short: short, Long: long,
		Args: daemonArguments,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.Check(); err != nil {
			return commandline.AsUsage(err)
		}
		c.Program, c.Flags, c.Out, c.Log = *program, args, cmd.OutOrStdout(), cmd.ErrOrStderr()
		ctx, stop := untilInterrupted(cmd.Context())
		defer stop()
		return measure(ctx, *c)
	}
	cmd.Flags().DurationVar(&c.For, "for", c.For, "duration of each measurement")
	return cmd, c
}

// newBenchScaleCommand returns the command that measures how the cost of a span grows.
func newBenchScaleCommand(program *string) *cobra.Command {
	c := bench.DefaultConfig()
	c.Rate = 1e6
	var only []string
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure how the cost of a span grows with connections, origins, keys and cores",
		Long: `Measure the cost of a span in the daemon with 1 to 1000 connections, 1 to 1000 origins
and 10 to 100,000 keys, with raised limits, and the maximum rate with one or more CPUs.
Prints a table.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range only {
				if !slices.Contains(bench.ScaleNames(), name) {
					return commandline.Mistake("parse --only: %q is not one of %s", name,
						strings.Join(bench.ScaleNames(), ", "))
				}
			}
			if c.For <= 0 || !(c.Rate >= 0) {
				return commandline.Mistake("parse --for and --rate: --for must be positive, and --rate must not " +
					"be negative")
			}
			c.Program, c.Out, c.Log = *program, cmd.OutOrStdout(), cmd.ErrOrStderr()
			ctx, stop := untilInterrupted(cmd.Context())
			defer stop()
			return bench.Scale(ctx, c, only)
		},
	}
	f := cmd.Flags()
	f.DurationVar(&c.For, "for", c.For, "length of each measurement, after a warm-up; 10s is one cycle "+
		"with its flush")
	f.Float64Var(&c.Rate, "rate", c.Rate, "rate in spans per second, except for cores")
	f.StringSliceVar(&only, "only", nil, "measurements: connections, origins, keys, cores (default: all)")
	return cmd
}

// newBenchTracerCommand returns the hidden command with which bench starts its tracer processes.
func newBenchTracerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tracer", Short: "Run a tracer for bench", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Tracer(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newBenchRelayCommand returns the hidden command with which bench starts its relay process.
func newBenchRelayCommand() *cobra.Command {
	return &cobra.Command{
		Use: "relay", Short: "Run the relay for bench", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return relay.Run(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
