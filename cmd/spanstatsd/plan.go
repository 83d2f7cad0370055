package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/recording"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
	"github.com/spf13/cobra"
)

// newPlanCommand returns the command that proposes larger budgets.
func newPlanCommand(variables map[string]string) *cobra.Command {
	var daemon daemonFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Propose flags for labels that exceed their budgets",
		Long: `Read the status of a running daemon, and print the number of values of each label, and
the flags of run that keep all of these values. If a label needs more than the maximum
budget, it is better to drop the label. The numbers are those of the last interval in
which a label exceeded its budget. The daemon is selected as for status.

The exit status is 1 if the flags need more memory than the limit allows, and 3 if
no daemon responds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			source, err := daemon.source(timeout)
			if err != nil {
				return err
			}
			_, status, err := source.get(cmd.Context())
			if err != nil {
				return err
			}
			return printPlan(cmd.OutOrStdout(), status)
		},
	}
	f := cmd.Flags()
	daemon.addTo(f)
	f.DurationVar(&timeout, "timeout", 5*time.Second, "maximum time to wait for a response")
	cmd.AddCommand(newPlanFileCommand(variables))
	return cmd
}

// newPlanFileCommand returns the command that proposes larger budgets for the spans of a file. It has the flags
// of run.
func newPlanFileCommand(variables map[string]string) *cobra.Command {
	o := &runOptions{variables: variables}
	cmd := &cobra.Command{
		Use:   "file FILE",
		Short: "Propose flags for the spans of a recorded OTLP file",
		Long: `Read a file with one OTLP trace request in JSON per line, as the Collector's file
exporter writes it. Print the number of values of each label of the spans, and the
flags of run that keep all of these values. No daemon is needed. Use the flags that
the daemon will have, because dimensions, names, --ignore and limits affect the
numbers; the memory limit is that of this machine. The recording is divided into
intervals of --flush-interval, and each number is the highest of any interval.

The exit status is 1 if the flags need more memory than the limit allows.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd); err != nil {
				return err
			}
			status, err := o.readRecording(args[0])
			if err != nil {
				return err
			}
			return printPlan(cmd.OutOrStdout(), status)
		},
	}
	o.addTo(cmd)
	return cmd
}

// readRecording returns the status of a daemon that has received the spans of a file, as far as a plan needs it.
func (o *runOptions) readRecording(name string) (*status.Status, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read recording: %w", err)
	}
	defer file.Close()
	c := &o.config
	if err := checkForRecording(c); err != nil {
		return nil, err
	}
	result, err := recording.Read(recording.Config{
		Labels: c.OTLP.Labels, Ignore: c.Admit.Ignore, MaxResource: c.Admit.MaxResource,
		Interval: c.Aggregate.FlushInterval, Registry: c.Aggregate.Config,
	}, file)
	if err != nil {
		return nil, err
	}
	if result.Spans == 0 && result.CountedByClients > 0 {
		return nil, fmt.Errorf("read recording: all %d spans of %s are marked as counted by their clients; record traces of "+
			"applications without a client of spanstatsd or Datadog", result.CountedByClients, name)
	}
	if result.Spans == 0 {
		return nil, fmt.Errorf("read recording: %s has no spans; record traces with the file exporter of the OpenTelemetry "+
			"Collector in the format json", name)
	}
	s := &status.Status{Config: c.Settings}
	s.Overflow = result.Overflow
	s.Aggregates.Max = c.Aggregate.MaxAggregates
	s.Memory = status.MemoryOf(c.Memory(), c.MemoryLimit, c.Preset)
	return s, nil
}

// checkForRecording returns an error for settings with which a recording can't be read.
func checkForRecording(c *daemon.Config) error {
	var semanticsErr error
	if c.OTLP.Semantics != otlp.SemanticsOTel {
		semanticsErr = commandline.Mistake("plan budgets: a recording can be read only with --otlp-semantics=otel")
	}
	intervalErr := check.Time("flush-interval", c.Aggregate.FlushInterval, time.Second, c.Aggregate.BucketWidth)
	return commandline.AsUsage(semanticsErr, intervalErr, c.Aggregate.Config.Check())
}

// printPlan prints the plan for a daemon with the given status. It returns an error if the proposed flags need more
// memory than the limit allows.
func printPlan(out io.Writer, s *status.Status) error {
	plan := doctor.NewPlan(s)
	writePlan(out, &plan)
	if !plan.Fits() {
		return fmt.Errorf("plan budgets: %s of memory are needed, and the limit is %s; raise the memory limit, or drop "+
			"a dimension", memory.Text(plan.TotalBytes), memory.Text(plan.LimitBytes))
	}
	return nil
}

// plainArgument matches arguments that a shell leaves unchanged.
var plainArgument = regexp.MustCompile(`^[-\w.,:=/@+%]+$`)

// shellQuoted returns an argument, in quotes if a shell would interpret a part of it. Clients choose the
// names of tags, and an operator copies the flags to a command line.
func shellQuoted(argument string) string {
	if plainArgument.MatchString(argument) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// writePlan writes the demand for values, the proposed flags, and the memory that they need.
func writePlan(out io.Writer, plan *doctor.Plan) {
	if len(plan.Demand) == 0 {
		fmt.Fprintln(out, "no label has exceeded its budget")
		return
	}
	for _, line := range plan.Demand {
		fmt.Fprintln(out, line)
	}
	if len(plan.Flags) == 0 {
		return
	}
	fmt.Fprint(out, "\nspanstatsd run")
	for _, flag := range plan.Flags {
		fmt.Fprint(out, " "+shellQuoted(flag))
	}
	fmt.Fprintln(out)
	limit := "no memory limit is set"
	if plan.LimitBytes > 0 {
		limit = "the memory limit is " + memory.Text(plan.LimitBytes)
	}
	fmt.Fprintf(out, "\nmaximum memory with these flags: %s; %s\n", memory.Text(plan.TotalBytes), limit)
}
