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
		"shape of the spans: stable, pool, skewed, burst, adversarial; also unique-resource, unique-peer; "+
			"flood:SHAPE or flood:SHAPE:5%, see below; or traces, of the agent's API")
	f.StringVar(&c.Format, "format", c.Format,
		"of traces: which recorded request is sent, "+strings.Join(bench.Recorded, ", "))
	f.IntVar(&c.KeyCount, "key-count", 0, "so many keys in the shape of stable, instead of a workload")
	f.Uint64Var(&c.Spans, "spans", 0, "spans to send in all (default: as many as --for allows)")
	f.DurationVar(&c.For, "for", c.For, "how long to send; 0 where --spans ends it")
	f.DurationVar(&c.WarmUp, "warm-up", 0, "leave the first so long of --for out of the costs, and the "+
		"report at the end")
	f.IntVar(&c.CPUs, "cpus", 0, "processors for the daemon and the tracers together (default: all)")
	f.Float64Var(&c.Rate, "rate", 0, "spans a second in all (default: as fast as it goes)")
	f.StringVar(&c.Tracer, "tracer", c.Tracer,
		"what sends: wire (messages encoded before) or client (the client library)")
	f.StringVar(&c.Keys, "keys", c.Keys, "how a tracer names keys: raw or numbered")
	f.IntVar(&c.Batch, "batch", c.Batch, "spans that are published together")
	f.IntVar(&c.Producers, "producers", c.Producers, "tracers, a process each")
	f.IntVar(&c.Connections, "connections", 0, "connections of all tracers (default: one each)")
	f.IntVar(&c.Origins, "origins", c.Origins, "origins of all connections")
	f.StringVar(&c.Daemon, "daemon", "", "HTTP address of a daemon that runs already, such as "+
		"http://127.0.0.1:9126 (default: one is started)")
	f.StringVar(&c.Socket, "socket", c.Socket, "its socket, with --daemon")
	f.DurationVar(&c.Every, "every", 0, "interval of progress lines")
	f.StringVar(&c.Profile, "profile", "", "write the daemon's CPU profile to this file; one that runs "+
		"already needs --debug")
	f.BoolVar(&o.json, "json", false, "one JSON object")
}

func newBenchCommand() *cobra.Command {
	o := &benchOptions{config: bench.DefaultConfig()}
	program := &o.config.Program
	cmd := &cobra.Command{
		Use:   "bench [flags] [-- flags of run]",
		Short: "Measure what a span costs",
		Long: `Start a daemon, a stand-in agent and tracers, each a process of its own, send
spans, and report what they cost: throughput, CPU time by the kernel's accounting,
allocations, memory, latency, drops, and the accounting. Arguments after -- go to the
daemon: spanstatsd-lab bench --workload pool -- --max-aggregates=2048

A flood is of keys that come once: --workload flood:urls. With a share, flood:urls:5%,
the other spans are of ` + strconv.Itoa(workload.HonestKeys) + ` keys that come again. Its shapes are
` + strings.Join(workload.Shapes()[:8], ", ") + `,
` + strings.Join(workload.Shapes()[8:], ", ") + `.

Exits 0 only if the accounting is balanced and the agent counted exactly what was accepted.`,
		Args: daemonArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.config.Flags = args
			return o.run(cmd)
		},
	}
	o.addFlags(cmd.Flags())
	cmd.PersistentFlags().StringVar(program, "program", "",
		"the daemon's program (default: the spanstatsd next to this one, or in PATH)")
	all, _ := newBenchTable(program, bench.All, "all", "Measure every workload, in one table",
		`Measure every workload as fast as it goes, keys by their bytes and by numbers, and
the client library at a rate. Arguments after -- are passed to the daemon; with
--buffer=block nothing is dropped, and the rate is what it carries.`)
	traces, tracesConfig := newBenchTable(program, bench.AllTraces, "traces",
		"Measure traces over the agent's API in every format, in one table",
		`Measure the workload of traces with a recorded request of each format: the
cost of forwarding it, in the daemon and in a bare relay, the cost that counting its
spans adds, and the cost of counting alone. With a rate, also the cost per second, as in
a pod that sends no faster. Arguments after -- are passed to the daemon.`)
	traces.Flags().Float64Var(&tracesConfig.Rate, "rate", 0, "spans a second (default: as fast as it goes)")
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
		return errors.New("run bench: the figures do not agree, or something failed, as the report says")
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
	cmd.Flags().DurationVar(&c.For, "for", c.For, "how long each lasts")
	return cmd, c
}

// newBenchScaleCommand returns the command that measures how the cost of a span grows.
func newBenchScaleCommand(program *string) *cobra.Command {
	c := bench.DefaultConfig()
	c.Rate = 1e6
	var only []string
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "Measure how a span's cost grows with connections, origins, keys and cores",
		Long: `Measure what a span costs the daemon with 1 to 1000 connections, 1 to 1000
origins and 10 to 100,000 keys, the limits raised, and what one processor and more of
them carry. Prints a table.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range only {
				if !slices.Contains(bench.ScaleNames(), name) {
					return commandline.Mistake("parse --only: %q is not one of %s", name,
						strings.Join(bench.ScaleNames(), ", "))
				}
			}
			if c.For <= 0 || !(c.Rate >= 0) {
				return commandline.Mistake("parse --for and --rate: neither may be negative, nor the first " +
					"nothing")
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
	f.Float64Var(&c.Rate, "rate", c.Rate, "spans a second, except for cores")
	f.StringSliceVar(&only, "only", nil, "what to measure: connections, origins, keys, cores (default: all)")
	return cmd
}

// newBenchTracerCommand returns the hidden command with which bench starts its tracer processes.
func newBenchTracerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tracer", Short: "A tracer of bench, which starts it", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Tracer(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// newBenchRelayCommand returns the hidden command with which bench starts its relay process.
func newBenchRelayCommand() *cobra.Command {
	return &cobra.Command{
		Use: "relay", Short: "The bare relay of bench, which starts it", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return relay.Run(cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
