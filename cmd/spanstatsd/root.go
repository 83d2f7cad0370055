package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
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
				return commandline.NoCommand(cmd, args)
			}
			return nil
		},
		Version: version, SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command,
			_ []string,
		) error {
			return commandline.ApplyEnvironment(cmd)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(commandline.FlagMistake)
	root.AddCommand(
		newRunCommand(),
		newStatusCommand(),
		newDoctorCommand(),
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
	commandline.UsageOf(root)
	commandline.CompleteValues(root)
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
				return commandline.NoCommand(asked, args)
			}
			return asked.Help()
		},
	}
}
