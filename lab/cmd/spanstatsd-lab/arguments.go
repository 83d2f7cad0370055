package main

import (
	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

// daemonArguments accepts arguments only after "--".
func daemonArguments(cmd *cobra.Command, args []string) error {
	if dash := cmd.ArgsLenAtDash(); len(args) > 0 && dash != 0 {
		return commandline.Mistake("%s takes arguments for the daemon only after --, but got %q; see %s "+
			"--help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}
