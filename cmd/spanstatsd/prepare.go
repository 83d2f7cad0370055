package main

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spf13/cobra"
)

// A directory of the host that Kubernetes makes belongs to root, and the daemon
// does not run as root. What must be done as root is done here, by an init
// container that is gone before the daemon starts.
func newPrepareCommand() *cobra.Command {
	var owner, mode string
	socket := ingest.DefaultConfig().Socket
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make the socket's directory and give it to the daemon's user",
		Long: `Make the directory of --socket if it is missing, and set its mode and owner, for
a daemon that runs as another user. This needs root, or the capability to change
owners; the daemon itself then needs neither.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) (err error) {
			if socket.DirectoryMode, err = parseMode("directory-mode", mode); err != nil {
				return usageError{err}
			}
			if socket.DirectoryOwner, err = parseOwner("directory-owner", owner); err != nil {
				return usageError{err}
			}
			if err := socket.PrepareDirectory(); err != nil {
				return fmt.Errorf("prepare directory: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&socket.Path, "socket", socket.Path, "Unix socket that the daemon will listen on")
	f.StringVar(&mode, "directory-mode", "0755", "permissions of its directory, octal")
	f.StringVar(&owner, "directory-owner", "65532:65532", "owner of its directory, UID:GID")
	return cmd
}
