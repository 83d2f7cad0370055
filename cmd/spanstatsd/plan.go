package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
	"github.com/spf13/cobra"
)

// newPlanCommand returns the command that proposes larger budgets.
func newPlanCommand() *cobra.Command {
	var daemon daemonFlags
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Propose flags for labels that exceed their budgets",
		Long: `Read the status of a running daemon and print how many values its labels had, and
flags of run with which the labels keep all of these values. A label that needs
more than the maximum is better dropped. The numbers are those of the last interval
in which a label exceeded its budget. The daemon is selected as for status.

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
			plan := doctor.NewPlan(status)
			writePlan(cmd.OutOrStdout(), &plan)
			if !plan.Fits() {
				return fmt.Errorf("plan budgets: %s of memory are needed, and the limit is %s; raise the memory limit, or drop "+
					"a dimension", memory.Text(plan.TotalBytes), memory.Text(plan.LimitBytes))
			}
			return nil
		},
	}
	f := cmd.Flags()
	daemon.addTo(f)
	f.DurationVar(&timeout, "timeout", 5*time.Second, "maximum time to wait for a response")
	return cmd
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
