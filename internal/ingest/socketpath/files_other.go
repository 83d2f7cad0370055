//go:build !unix

package socketpath

import "io/fs"

// The daemon does not run on other systems. These functions exist so that programs that use the client compile there.
func canCreateIn(string) bool { return false }

func isOwnedByUser(fs.FileInfo) bool { return false }
