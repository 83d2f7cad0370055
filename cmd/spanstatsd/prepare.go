package main

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spf13/cobra"
)

// newPrepareCommand returns the command that prepares the socket's directory. A host directory that
// Kubernetes creates belongs to root, but the daemon does not run as root. So an init container
// runs this command as root before the daemon starts.
func newPrepareCommand() *cobra.Command {
	directory := ingest.DefaultConfig().Socket
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Create the directory of the socket for the user of the daemon",
		Long: `Create the directory of --socket if it does not exist, and set its mode and owner, for
a daemon that runs as another user. This needs root or the capability to change
owners; the daemon itself needs neither.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := directory.Check("socket"); err != nil {
				return commandline.AsUsage(err)
			}
			if err := directory.PrepareDirectory(); err != nil {
				return fmt.Errorf("prepare directory: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.Var(commandline.Text(&directory.Path, commandline.Path), "socket",
		"path of the Unix socket that the daemon will listen on")
	f.Var(commandline.Parsed(&directory.DirectoryMode, "0755", "octal", socket.ParseMode), "directory-mode",
		"permissions of the socket's directory")
	f.Var(commandline.Parsed(&directory.DirectoryOwner, "65532:65532", "UID:GID", socket.ParseOwner),
		"directory-owner", "owner of the socket's directory")
	return cmd
}
