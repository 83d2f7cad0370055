package socket

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/ingest/socketpath"
)

// Config says where a socket is and who may connect to it.
type Config struct {
	Path           string
	Mode           fs.FileMode
	Owner          *Owner            // nil: the daemon's own
	DirectoryMode  fs.FileMode       // 0: the directory must be there, and is left as it is
	Private        bool              // the directory is the user's own, and made if it is missing
	DirectoryOwner *Owner            // nil: left as it is
	Inherited      *net.UnixListener // the socket itself, where a service manager made it
}

// Owner is a user and a group, by number: there are no names in an empty image.
type Owner struct{ UID, GID int }

// maxSocketPath is what the kernel has room for in a Unix address.
const maxSocketPath = 107

// Check says why there can be no socket at the path that a flag gives.
func (s *Config) Check(flag string) error {
	if s.Path == "" {
		return fmt.Errorf("check %s: the path is empty; give one with --%s", flag, flag)
	}
	if len(s.Path) > maxSocketPath {
		return fmt.Errorf("check %s: the path has %d bytes and a socket's may have %d; choose a shorter "+
			"--%s: %s",
			flag, len(s.Path), maxSocketPath, flag, s.Path)
	}
	return nil
}

// PrepareDirectory makes the directory if it was given a mode, and otherwise
// expects it.
func (s *Config) PrepareDirectory() error {
	if err := s.Check("socket"); err != nil {
		return err
	}
	dir := filepath.Dir(s.Path)
	if s.Private {
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make socket directory: %w; choose another with --socket", err)
		}
		if err := socketpath.CheckOwn(dir); err != nil {
			return fmt.Errorf("listen on socket: %w; remove it, or choose another --socket", err)
		}
	}
	if s.DirectoryMode != 0 {
		if err := os.Mkdir(dir, s.DirectoryMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("make socket directory: %w; make its parent or choose another --socket", err)
		}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("listen on socket: %w; create the directory, or have spanstatsd prepare make it",
			err)
	}
	if !info.IsDir() {
		return fmt.Errorf("listen on socket: %s is not a directory; choose another --socket", dir)
	}
	if s.DirectoryMode != 0 && info.Mode().Perm() != s.DirectoryMode {
		if err := os.Chmod(dir, s.DirectoryMode); err != nil {
			return fmt.Errorf("set directory mode: %w; leave --directory-mode out to take it as it is", err)
		}
	}
	if s.DirectoryOwner != nil {
		if err := os.Chown(dir, s.DirectoryOwner.UID, s.DirectoryOwner.GID); err != nil {
			return fmt.Errorf("set directory owner: %w; leave --directory-owner out to take it as it is", err)
		}
	}
	return nil
}

// ParseMode reads permissions.
func ParseMode(given string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(given, 8, 32)
	if err != nil || mode == 0 || mode > 0o777 {
		return 0, fmt.Errorf("%q is not an octal mode such as 0660", given)
	}
	return fs.FileMode(mode), nil
}

// ParseOwner reads a user and a group, nil for none. Names need files that an empty image
// does not have.
func ParseOwner(given string) (*Owner, error) {
	if given == "" {
		return nil, nil
	}
	user, group, _ := strings.Cut(given, ":")
	uid, userErr := strconv.ParseUint(user, 10, 31)
	gid, groupErr := strconv.ParseUint(group, 10, 31)
	if userErr != nil || groupErr != nil {
		return nil, fmt.Errorf("%q is not UID:GID, two numbers", given)
	}
	return &Owner{UID: int(uid), GID: int(gid)}, nil
}
