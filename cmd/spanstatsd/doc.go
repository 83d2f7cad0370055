// Command spanstatsd is a sidecar that counts finished spans into statistics.
//
// main.go runs one command line and turns its error into an exit code, root.go
// lists the subcommands, and each subcommand is a file: its flags, its help and a
// function that does the work and writes to the command's own output. The work
// itself is done by the packages in internal/: run only starts and stops
// internal/daemon, status only asks a running daemon over HTTP.
//
// Every flag of run can be given in the environment as well, and the command line
// wins. A value that can't be used is refused before anything is opened, with what
// to do about it, and exit code 2.
//
// Text of a daemon, a file or the environment is made printable before it reaches a terminal.
package main
