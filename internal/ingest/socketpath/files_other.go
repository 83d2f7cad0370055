//go:build !unix

package socketpath

import "io/fs"

// Elsewhere no daemon runs, and nobody can tell whose a file is: programs that link the client compile.
func mayMakeIn(string) bool { return false }

func isOurs(fs.FileInfo) bool { return false }
