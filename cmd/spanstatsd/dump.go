package main

import (
	"os"

	"github.com/spanstatsd/spanstatsd/internal/export/dump"
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
		Args: cobra.ExactArgs(1),
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
			return refusal.Print(cmd.OutOrStdout())
		},
	}
}
