// Package socketpath determines the default path of the daemon's socket. The daemon and its clients use the same rule,
// so that they find each other without configuration. docs/protocol.md describes it for clients in other languages.
//
// The candidates are, in this order: Default, if the installation of the daemon has created its directory; and paths in
// directories that belong to the user, below XDG_RUNTIME_DIR and below the directory for temporary files, for a daemon
// that a user has started. A daemon listens on the first path at which it may create a socket. A client tries all of
// them. It ignores directories in which another user could create a socket (CheckOwn).
//
// Concurrency: all functions are safe for concurrent use. They read the environment and the file system, and create
// nothing.
package socketpath

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Default is the path of the socket if its directory exists.
const Default = "/var/run/spanstatsd/" + name

const (
	name = "spans.sock"
	// maxLength is the maximum length of the path of a Unix socket.
	maxLength = 107
)

// userPaths returns the paths in directories that belong to the user.
func userPaths() (paths []string) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		paths = append(paths, filepath.Join(dir, "spanstatsd", name))
	}
	return append(paths, filepath.Join(os.TempDir(), "spanstatsd-"+strconv.Itoa(os.Getuid()), name))
}

// ForDaemon returns the path at which a daemon should create its socket: Default if the user can create files in its
// directory. Otherwise it returns a path in a private directory, which the daemon has to create, and isPrivate is true.
// If the user can't create the private directory either, it returns Default.
func ForDaemon() (path string, isPrivate bool) {
	if canCreateIn(filepath.Dir(Default)) {
		return Default, false
	}
	for _, path := range userPaths() {
		directory := filepath.Dir(path)
		canCreateDirectory := canCreateIn(filepath.Dir(directory))
		if canCreateDirectory && len(path) <= maxLength {
			return path, true
		}
	}
	return Default, false
}

// ForClients returns the paths at which a client should look for the daemon's socket, in this order: Default, and
// paths in directories that only this user can access.
func ForClients() []string {
	paths := []string{Default}
	for _, path := range userPaths() {
		if CheckOwn(filepath.Dir(path)) == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// CheckOwn returns an error unless dir is a directory that belongs to this user, and that other users can neither
// read nor write.
func CheckOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("check directory: %w", err)
	}
	isClosedToOthers := info.Mode().Perm()&0o077 == 0
	isOwn := info.IsDir() && isClosedToOthers && isOwnedByUser(info)
	if !isOwn {
		return fmt.Errorf("%s is not a directory that only this user can access", dir)
	}
	return nil
}
