// Package commandline is what commands of this project have in common: values of flags, groups of
// flags, help, manual pages, environment variables, and what is said of mistakes.
//
// # What it owns
//
// A flag is one line of a Group, with its value, its default and its text. Help, the manual page and
// the variables of the environment come from that line. A value is read when it is given, so that
// what can't be used names the flag or the variable that it was given by, in words that say what
// to write instead. A flag, a variable or a command that does not exist is answered with the one
// that may have been meant. A mistake is a UsageError, and as many as there are come at once.
//
// # Threading
//
// Commands are made and run by one goroutine. Nothing here starts another or keeps state beside the
// commands, but for the functions that complete values, which cobra keeps by flag.
package commandline
