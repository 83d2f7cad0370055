package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

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
