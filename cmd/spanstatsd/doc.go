// Command spanstatsd is a sidecar that counts finished spans into statistics.
//
// main.go lists the subcommands, runs one command line and turns its error into an exit code. Each subcommand is
// a file: its flags, its help, and a function that writes to the command's output. The packages in internal/ do
// the work: run starts and stops internal/daemon, status asks a running daemon over HTTP.
//
// The flags of run are in groups: receivers.go, exporters.go, limits.go and process.go. options.go makes the
// daemon's configuration from them, and the list of settings that names the source of each value.
//
// Every flag of run can be given in the environment as well; the command line has precedence. An unusable value
// is refused before anything is opened, with what to do about it, and exit code 2.
//
// Text of a daemon, a file or the environment is made printable before it reaches a terminal.
package main
