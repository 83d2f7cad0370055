package main

import (
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

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
				return noCommand(cmd, args)
			}
			return nil
		},
		Version: version, SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return applyEnvironment(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagMistake)
	root.AddCommand(
		newRunCommand(),
		newStatusCommand(),
		newConfigCommand(),
		newDumpCommand(),
		newPrepareCommand(),
		newWaitCommand(),
		newManCommand(),
		newVersionCommand(),
	)
	root.SetHelpCommand(newHelpCommand())
	root.InitDefaultCompletionCmd()
	root.SetVersionTemplate(versionText())
	usageOf(root)
	completeValues(root)
	return root
}

// newHelpCommand is as the library's, but that a command which is not there is an error.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show what a command does and which flags it has",
		RunE: func(cmd *cobra.Command, args []string) error {
			asked, left, err := cmd.Root().Find(args)
			if err != nil || len(left) > 0 {
				return noCommand(asked, args)
			}
			return asked.Help()
		},
	}
}

// noCommand says that there is no such command, and which may have been meant.
func noCommand(parent *cobra.Command, args []string) error {
	var near string
	if names := parent.SuggestionsFor(args[len(args)-1]); len(names) > 0 {
		near = names[0]
	}
	return usageError{fmt.Errorf("there is no command %q%s; see spanstatsd --help", strings.Join(args, " "), didYouMean("", near))}
}

// untilInterrupted is a context that also ends with SIGTERM or SIGINT. A second signal
// ends the process, whatever it then still waits for.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// takes refuses all words but so many, and says what they are.
func takes(count int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != count {
			return usageError{fmt.Errorf("%s takes %s, but got %q; see %s --help", cmd.Name(), what, args, cmd.CommandPath())}
		}
		return nil
	}
}

// noArguments refuses words that no flag takes.
var noArguments = takes(0, "no argument")
