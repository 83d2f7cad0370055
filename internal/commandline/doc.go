// Package commandline adds to cobra what the commands of this project share: flags in groups, values that
// validate themselves, environment variables, usage errors and manual pages.
//
// # What it owns
//
// A flag is one line of a Group, with its value, its default and its text. Help and the manual page come
// from that line. A value is parsed when it is given, so that an error names the flag or the variable. Each
// flag has an environment variable; an unknown variable with the project's prefix is an error. Everything
// that is wrong before a command runs is a UsageError.
//
// # Concurrency
//
// Commands are made and run by one goroutine. The package starts no goroutine and keeps no state, except for
// the completion functions that cobra keeps per flag.
package commandline
