package main

import (
	"os"

	"github.com/spanstatsd/spanstatsd/internal/export/dump"
	"github.com/spf13/cobra"
)

func newDumpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dump FILE",
		Short: "Print a payload that the agent rejected",
		Long: `Print a payload that the agent rejected and that run saved in --debug-dir: the
agent's response, the request headers, and the payload with its origin, buckets, and
the counts and latencies of each group. Parts that can't be decoded are named by
their position.`,
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
