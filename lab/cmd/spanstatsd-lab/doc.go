// Command spanstatsd-lab measures, shows and checks what spanstatsd does. An operator needs
// none of it, so it is a program of its own, and of a module of its own: bench measures a
// whole daemon, demo shows one at work, and check-client tells the author of a tracer what
// a daemon would understand of it.
//
// main.go runs one command line and turns its error into an exit code, root.go lists the
// commands, and each command is a file: its flags, its help and a function that writes to
// the command's own output. The work itself is done by the packages beside cmd/.
//
// bench starts the daemon that it measures as a process, from the program that operators
// run: --program names it, and without that it is the spanstatsd beside this program.
package main
