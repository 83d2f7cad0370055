// Command spanstatsd-lab measures, demonstrates and checks spanstatsd: bench measures a complete
// daemon, demo shows a running one, and check-client tells the author of a tracer how a daemon
// would interpret its messages. Operators do not need these commands, so they are a separate
// program in a separate module.
//
// main.go runs one command line and converts its error to an exit code. root.go lists the
// commands. Each command is a file with its flags, its help and a function that writes to the
// command's output. The packages of lab/ outside cmd/ do the work.
//
// bench runs the daemon as a process, from the program that operators use: the one named by
// --program, or else the spanstatsd in the directory of this program.
package main
