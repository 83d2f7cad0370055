// Command spanstatsd is a sidecar that counts finished spans into statistics.
// Each subcommand is a file; this one only chooses among them.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit codes: 2 for a command line that can't be used, 3 for a daemon that does
// not answer, 1 for everything else that fails afterwards.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// usageError is a mistake in the command line or the environment.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and returns the exit code. An error is on stderr,
// one line a reason; what a daemon or a file put into it can't act on a terminal.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "spanstatsd: %s\n", printableLines(err.Error()))
	var usage usageError
	var unreachable unreachableError
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &unreachable):
		return exitUnreachable
	}
	return exitFailure
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "spanstatsd",
		Short: "Counts finished spans into statistics, beside the process instead of in it",
		Long: `spanstatsd is a sidecar for processes that are traced. A tracer writes a
snapshot of each finished span to a Unix socket and forgets it; spanstatsd
counts the snapshots into 10-second statistics, sends them to the Datadog agent
and says of every span what became of it.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q; see spanstatsd --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.AddCommand(
		newRunCommand(),
		newDemoCommand(),
		newBenchCommand(),
		newStatusCommand(),
		newConfigCommand(),
		newDumpCommand(),
		newPrepareCommand(),
		newWaitCommand(),
		newManCommand(),
		newVersionCommand(),
	)
	return root
}

// noArguments refuses words that no flag takes.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument, but got %q; see %s --help", cmd.Name(), args[0], cmd.CommandPath())}
	}
	return nil
}
