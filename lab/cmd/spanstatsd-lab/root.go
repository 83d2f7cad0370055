package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

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
