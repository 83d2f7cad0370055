//go:build unix

package socketpath

import (
	"io/fs"
	"os"
	"syscall"
)

// canCreateIn reports whether this user may create files in a directory.
func canCreateIn(dir string) bool {
	const writeAndSearch = 2 | 1 // W_OK and X_OK of access(2)
	return syscall.Access(dir, writeAndSearch) == nil
}

// isOwnedByUser reports whether a file belongs to this user.
func isOwnedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
