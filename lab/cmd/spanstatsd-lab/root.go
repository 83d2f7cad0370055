package main

import (
	"context"
	"fmt"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

// version is set by the Makefile's build.
var version = "0.1.0-dev"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "spanstatsd-lab",
		Short: "Measures, shows and checks what spanstatsd does",
		Long: `spanstatsd-lab is what measuring, showing and testing spanstatsd needs, and what
running it does not: bench measures a daemon, demo shows one at work without anything
else, and check-client tells the author of a tracer what a daemon understands of it.`,
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return commandline.NoCommand(cmd, args)
			}
			return nil
		},
		Version: version, SuggestionsMinimumDistance: 2,
		Annotations: map[string]string{commandline.NoVariables: ""},
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(commandline.FlagMistake)
	root.AddCommand(newBenchCommand(), newDemoCommand(), newCheckClientCommand(), newManCommand(),
		newVersionCommand())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	root.SetVersionTemplate(versionText())
	commandline.UsageOf(root)
	commandline.CompleteValues(root)
	return root
}

func versionText() string {
	return fmt.Sprintf("spanstatsd-lab %s %s %s/%s\n", version, runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the Go that built it",
		Args:  commandline.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

// newManCommand writes the manual pages that a release carries.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write a manual page for each command into a directory",
		Hidden: true,
		Args:   commandline.Takes(1, "one directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return commandline.WritePages(cmd.Root(), args[0])
		},
	}
}

// untilInterrupted is a context that also ends with SIGTERM or SIGINT. A second signal
// ends the process, whatever it then still waits for.
func untilInterrupted(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
