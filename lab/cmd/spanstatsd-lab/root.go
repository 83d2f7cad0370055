package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "spanstatsd-lab",
		Short: "Measure and demonstrate spanstatsd, and check clients",
		Long: `spanstatsd-lab is for developers of spanstatsd and of its clients; running the daemon
does not need it. bench measures the cost of a daemon, demo runs one with generated
spans, and check-client shows how a daemon interprets the messages of a client.`,
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
