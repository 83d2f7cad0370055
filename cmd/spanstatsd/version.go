package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spf13/cobra"
)

// version is set by the Makefile's build; `go build` or `go run` alone leaves
// it and names the commit instead where Go recorded one.
var version = "0.1.0-dev"

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the Go that built it",
		Args:  commandline.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), versionText())
			return err
		},
	}
}

func versionText() string {
	return fmt.Sprintf("spanstatsd %s %s %s/%s%s\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH,
		commit())
}

// commit is the revision that Go recorded while building, if it did.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return " " + setting.Value
		}
	}
	return ""
}
