package main

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/commandline"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spf13/cobra"
)

// A directory of the host that Kubernetes makes belongs to root, and the daemon
// does not run as root. What must be done as root is done here, by an init
// container that is gone before the daemon starts.
func newPrepareCommand() *cobra.Command {
	directory := ingest.DefaultConfig().Socket
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make the socket's directory and give it to the daemon's user",
		Long: `Make the directory of --socket if it is missing, and set its mode and owner, for
a daemon that runs as another user. This needs root, or the capability to change
owners; the daemon itself then needs neither.`,
		Args: commandline.NoArguments,
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
	f.Var(commandline.Text(&directory.Path, commandline.Path), "socket", "Unix socket that the daemon will listen on")
	f.Var(commandline.Parsed(&directory.DirectoryMode, "0755", "octal", parseMode), "directory-mode", "permissions of the socket's directory")
	f.Var(commandline.Parsed(&directory.DirectoryOwner, "65532:65532", "UID:GID", parseOwner), "directory-owner", "owner of the socket's directory")
	return cmd
}

// parseMode reads permissions.
func parseMode(given string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(given, 8, 32)
	if err != nil || mode == 0 || mode > 0o777 {
		return 0, fmt.Errorf("%q is not an octal mode such as 0660", given)
	}
	return fs.FileMode(mode), nil
}

// parseOwner reads a user and a group, nil for none. Names need files that an empty image
// does not have.
func parseOwner(given string) (*socket.Owner, error) {
	if given == "" {
		return nil, nil
	}
	user, group, _ := strings.Cut(given, ":")
	uid, userErr := strconv.ParseUint(user, 10, 31)
	gid, groupErr := strconv.ParseUint(group, 10, 31)
	if userErr != nil || groupErr != nil {
		return nil, fmt.Errorf("%q is not UID:GID, two numbers", given)
	}
	return &socket.Owner{UID: int(uid), GID: int(gid)}, nil
}
