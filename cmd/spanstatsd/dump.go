package main

import (
	"fmt"
	"os"

	"github.com/spanstatsd/spanstatsd/internal/dump"
	"github.com/spf13/cobra"
)

func newDumpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dump FILE",
		Short: "Print a payload that the agent refused",
		Long: `Print a payload that the agent refused, as run keeps them in --debug-dir: the
agent's answer, the headers that we sent, and the payload with its origin, its
buckets, and of each group the counts and latencies. What can't be decoded is
named by its place in the payload.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("dump takes one file, but got %q; see spanstatsd dump --help", args)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			refusal, err := dump.Read(file)
			if err != nil {
				return err
			}
			return printRefusal(cmd.OutOrStdout(), refusal)
		},
	}
}
