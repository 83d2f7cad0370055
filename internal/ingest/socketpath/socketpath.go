// Package socketpath says where the socket of a daemon is that nobody gave a path: the daemon and its tracers
// find it by the same rule.
//
// # What it owns
//
// The paths of sockets, in order: Default, whose directory whoever installs the daemon makes; and those in
// directories of the user's own, below XDG_RUNTIME_DIR and below the directory of temporary files, for a
// daemon that anybody starts. A daemon listens at the first where it may make a socket. A tracer tries one
// after the other. docs/protocol.md has the rule for clients in other languages.
//
// # Threading and bounds
//
// Functions of the environment and of the file system, for any goroutine. They make nothing. A directory of
// the user's own counts only if no other user can put a socket there: CheckOwn.
package socketpath

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Default is where it is if its directory is there.
const Default = "/var/run/spanstatsd/" + name

const (
	name = "spans.sock"
	// mostBytes is what a Unix socket's address has room for.
	mostBytes = 107
)

// own are those in directories of the user's own.
func own() (paths []string) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		paths = append(paths, filepath.Join(dir, "spanstatsd", name))
	}
	return append(paths, filepath.Join(os.TempDir(), "spanstatsd-"+strconv.Itoa(os.Getuid()), name))
}

// ForDaemon is where a daemon listens, and whether it makes the directory, as one of its user's own.
// Where it may nowhere, it is Default, so that the error names what an operator knows.
func ForDaemon() (path string, isOwn bool) {
	if mayMakeIn(filepath.Dir(Default)) {
		return Default, false
	}
	for _, path := range own() {
		if len(path) <= mostBytes && mayMakeIn(filepath.Dir(filepath.Dir(path))) {
			return path, true
		}
	}
	return Default, false
}

// ForClients are where a tracer tries to connect, in order.
func ForClients() []string {
	paths := []string{Default}
	for _, path := range own() {
		if CheckOwn(filepath.Dir(path)) == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// CheckOwn says why a directory is not one that this user alone may write to and look into.
func CheckOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at directory: %w", err)
	}
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !isOurs(info) {
		return fmt.Errorf("%s is not a directory of this user's alone", dir)
	}
	return nil
}
