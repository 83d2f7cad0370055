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

// Config contains the path and the permissions of a socket.
type Config struct {
	Path           string
	Mode           fs.FileMode
	Owner          *Owner            // nil for the daemon's user and group
	DirectoryMode  fs.FileMode       // 0 if the directory must exist and is not changed
	Private        bool              // the directory belongs to this user only, and is created if it does not exist
	DirectoryOwner *Owner            // nil if the owner of the directory is not changed
	Inherited      *net.UnixListener // socket that the service manager has created, or nil
}

// Owner is a user and a group. Both are numbers, because a minimal container image has no files that
// contain names.
type Owner struct{ UID, GID int }

// maxSocketPath is the maximum length of a Unix address in the kernel.
const maxSocketPath = 107

// Check returns an error if s.Path is empty, or too long for a Unix socket. flag is the name of the command line
// flag for the path, which the error message contains.
func (s *Config) Check(flag string) error {
	if s.Path == "" {
		return fmt.Errorf("check %s: the path is empty; set --%s", flag, flag)
	}
	if len(s.Path) > maxSocketPath {
		return fmt.Errorf("check %s: the path has %d bytes, and the maximum is %d; choose a shorter --%s than %s",
			flag, len(s.Path), maxSocketPath, flag, s.Path)
	}
	return nil
}

// PrepareDirectory creates the parent directory of s.Path if DirectoryMode or Private is set, and sets the
// configured mode and owner of the directory. It returns an error if the directory does not exist afterwards.
func (s *Config) PrepareDirectory() error {
	if err := s.Check("socket"); err != nil {
		return err
	}
	dir := filepath.Dir(s.Path)
	if err := s.createDirectory(dir); err != nil {
		return err
	}
	mode, err := directoryMode(dir)
	if err != nil {
		return err
	}
	return s.setPermissions(dir, mode)
}

// CreatesDirectory reports whether PrepareDirectory creates a directory that does not exist.
func (s *Config) CreatesDirectory() bool { return s.Private || s.DirectoryMode != 0 }

// CheckDirectory returns an error if the parent directory of s.Path does not exist.
func (s *Config) CheckDirectory() error {
	_, err := directoryMode(filepath.Dir(s.Path))
	return err
}

// directoryMode returns the permissions of dir, or an error if dir is not a directory.
func directoryMode(dir string) (fs.FileMode, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, fmt.Errorf("listen on socket: %w; create the directory, for example with spanstatsd prepare",
			err)
	}
	if !info.IsDir() {
		return 0, fmt.Errorf("listen on socket: %s is not a directory; choose another --socket", dir)
	}
	return info.Mode().Perm(), nil
}

// createDirectory creates dir if DirectoryMode or Private is set. It succeeds if dir already exists, but with
// Private only if dir belongs to this user and other users have no access.
func (s *Config) createDirectory(dir string) error {
	if s.Private {
		if err := createPrivateDirectory(dir); err != nil {
			return err
		}
	}
	if s.DirectoryMode == 0 {
		return nil
	}
	err := os.Mkdir(dir, s.DirectoryMode)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create socket directory: %w; create its parent or choose another --socket", err)
	}
	return nil
}

// createPrivateDirectory creates dir so that only this user has access. If dir already exists, it returns an error
// if dir belongs to another user, or if other users have access.
func createPrivateDirectory(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create socket directory: %w; choose another --socket", err)
	}
	if err := socketpath.CheckOwn(dir); err != nil {
		return fmt.Errorf("listen on socket: %w; remove it, or choose another --socket", err)
	}
	return nil
}

// setPermissions sets the configured mode and owner of dir, if any. currentMode is the present mode of dir; if it
// equals the configured mode, the mode is not set again.
func (s *Config) setPermissions(dir string, currentMode fs.FileMode) error {
	mustSetMode := s.DirectoryMode != 0 && s.DirectoryMode != currentMode
	if mustSetMode {
		if err := os.Chmod(dir, s.DirectoryMode); err != nil {
			return fmt.Errorf("set directory mode: %w; remove --directory-mode to keep its current mode", err)
		}
	}
	if s.DirectoryOwner != nil {
		if err := os.Chown(dir, s.DirectoryOwner.UID, s.DirectoryOwner.GID); err != nil {
			return fmt.Errorf("set directory owner: %w; remove --directory-owner to keep its current owner", err)
		}
	}
	return nil
}

// ParseMode parses an octal file mode, for example 0660. It returns an error if the mode is 0, or has other bits
// than the permissions of user, group and others.
func ParseMode(text string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode == 0 || mode > 0o777 {
		return 0, fmt.Errorf("%q is not an octal mode such as 0660", text)
	}
	return fs.FileMode(mode), nil
}

// ParseOwner parses a user and a group in the form UID:GID, for example 1000:1000. It returns nil for an empty text.
// Names are not supported, because a minimal container image has no /etc/passwd.
func ParseOwner(text string) (*Owner, error) {
	if text == "" {
		return nil, nil
	}
	user, group, _ := strings.Cut(text, ":")
	const maxBits = 31 // so that a number also fits in an int of 32 bits
	uid, userErr := strconv.ParseUint(user, 10, maxBits)
	gid, groupErr := strconv.ParseUint(group, 10, maxBits)
	if userErr != nil || groupErr != nil {
		return nil, fmt.Errorf("%q is not UID:GID; use two numbers, such as 1000:1000", text)
	}
	return &Owner{UID: int(uid), GID: int(gid)}, nil
}
