// Command spanstatsd is a sidecar that counts finished spans into statistics.
//
// main.go lists the subcommands, runs one command line and converts its error to an exit code. Each
// subcommand has a file with its flags, its help, and a function that writes to the command's
// output. The packages in internal/ do the work: run starts and stops internal/daemon, status
// queries a running daemon over HTTP.
//
// The flags of run are in groups: receivers.go, exporters.go, limits.go and process.go. options.go
// makes the daemon's configuration from them, and the list of settings that contains the source of
// each value.
//
// Every flag of run can be set by an environment variable too; the command line takes precedence.
// An invalid value is rejected before anything is opened, with an error that says how to fix it,
// and exit code 2.
//
// Text from a daemon, a file or the environment is made printable before it is written to a
// terminal.
package main
