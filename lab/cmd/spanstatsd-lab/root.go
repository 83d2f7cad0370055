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
		Version: version,
	}
	root.AddCommand(newBenchCommand(), newDemoCommand(), newCheckClientCommand(), newManCommand(),
		newVersionCommand())
	root.InitDefaultCompletionCmd()
	root.SetVersionTemplate(versionText())
	commandline.CompleteValues(root)
	return root
}

// newManCommand returns the command that writes the manual pages of a release.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write a manual page for each command into a directory",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return commandline.WritePages(cmd.Root(), args[0])
		},
	}
}
