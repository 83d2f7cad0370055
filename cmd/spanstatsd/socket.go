package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/systemd"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// socketOptions are the flags about who may connect.
type socketOptions struct {
	mode, owner                   string
	directoryMode, directoryOwner string
	allow                         []uint
}

func (o *socketOptions) addFlags(f *pflag.FlagSet, in *ingest.Config) {
	f.StringVar(&in.Socket.Path, "socket", in.Socket.Path, "Unix socket that tracers write to")
	f.StringVar(&o.mode, "socket-mode", "0660", "permissions of the socket, octal")
	f.StringVar(&o.owner, "socket-owner", "", "owner of the socket, UID:GID (default: the daemon's own)")
	f.StringVar(&o.directoryMode, "directory-mode", "", "permissions of the socket's directory, octal, which is made if it is missing (default: it is left as it is)")
	f.StringVar(&o.directoryOwner, "directory-owner", "", "owner of the socket's directory, UID:GID (default: it is left as it is)")
	f.UintSliceVar(&o.allow, "allow-uid", nil, "user that may connect; may be repeated (default: whoever may open the socket)")
}

// complete turns them into ingest's configuration.
func (o *socketOptions) complete(in *ingest.Config) error {
	var badMode, badOwner, badUID error
	in.Socket.Mode, badMode = parseMode("socket-mode", o.mode)
	in.Socket.Owner, badOwner = parseOwner("socket-owner", o.owner)
	for _, uid := range o.allow {
		if uint64(uid) > math.MaxUint32 {
			badUID = fmt.Errorf("parse --allow-uid: %d is no user's number", uid)
		}
		in.AllowUIDs = append(in.AllowUIDs, uint32(uid))
	}
	return errors.Join(badMode, badOwner, setDirectory(&in.Socket, o.directoryMode, o.directoryOwner), badUID)
}

// setDirectory reads what the directory is to have; nothing leaves it as it is.
func setDirectory(s *socket.Config, mode, owner string) error {
	var badMode, badOwner error
	if mode != "" {
		s.DirectoryMode, badMode = parseMode("directory-mode", mode)
	}
	s.DirectoryOwner, badOwner = parseOwner("directory-owner", owner)
	return errors.Join(badMode, badOwner)
}

func parseMode(flag, text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode == 0 || mode > 0o777 {
		return 0, fmt.Errorf("parse --%s: %q is not an octal mode such as 0660", flag, text)
	}
	return fs.FileMode(mode), nil
}

// parseOwner reads a user and a group. Names need files that an empty image
// does not have.
func parseOwner(flag, text string) (*socket.Owner, error) {
	if text == "" {
		return nil, nil
	}
	user, group, _ := strings.Cut(text, ":")
	uid, userErr := strconv.ParseUint(user, 10, 31)
	gid, groupErr := strconv.ParseUint(group, 10, 31)
	if userErr != nil || groupErr != nil {
		return nil, fmt.Errorf("parse --%s: %q is not UID:GID, two numbers", flag, text)
	}
	return &socket.Owner{UID: int(uid), GID: int(gid)}, nil
}

// takeSockets takes over what the service manager listens on for the daemon.
func (o *runOptions) takeSockets() error {
	sockets, err := systemd.TakeSockets()
	if err != nil {
		return err //nolint:wrapcheck // it says what to do
	}
	traces, taking := &o.config.APM, &o.config.OTLP
	o.config.Ingest.Socket.Given = sockets.Unix(o.config.Ingest.Socket.Path)
	traces.Socket.Given, traces.Given = sockets.Unix(traces.Socket.Path), sockets.TCP(traces.Addr)
	taking.Socket.Given, taking.Given = sockets.Unix(taking.Socket.Path), sockets.TCP(taking.Addr)
	return sockets.CheckTaken() //nolint:wrapcheck // it says what to do
}

// A directory of the host that Kubernetes makes belongs to root, and the daemon
// does not run as root. What must be done as root is done here, by an init
// container that is gone before the daemon starts.
func newPrepareCommand() *cobra.Command {
	var owner, mode string
	directory := ingest.DefaultConfig().Socket
	cmd := &cobra.Command{
		Use:   "prepare",
		Short: "Make the socket's directory and give it to the daemon's user",
		Long: `Make the directory of --socket if it is missing, and set its mode and owner, for
a daemon that runs as another user. This needs root, or the capability to change
owners; the daemon itself then needs neither.`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			if err := errors.Join(directory.Check("socket"), setDirectory(&directory, mode, owner)); err != nil {
				return usageError{err}
			}
			if err := directory.PrepareDirectory(); err != nil {
				return fmt.Errorf("prepare directory: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&directory.Path, "socket", directory.Path, "Unix socket that the daemon will listen on")
	f.StringVar(&mode, "directory-mode", "0755", "permissions of its directory, octal")
	f.StringVar(&owner, "directory-owner", "65532:65532", "owner of its directory, UID:GID")
	return cmd
}
