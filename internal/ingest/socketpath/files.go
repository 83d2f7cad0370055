//go:build unix

package socketpath

import (
	"io/fs"
	"os"
	"syscall"
)

// mayMakeIn says whether this user may make files in a directory.
func mayMakeIn(dir string) bool { return syscall.Access(dir, 2|1) == nil }

// isOurs says whether a file belongs to this user.
func isOurs(info fs.FileInfo) bool {
	of, known := info.Sys().(*syscall.Stat_t)
	return known && int(of.Uid) == os.Getuid()
}
