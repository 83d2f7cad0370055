// Package commands does what the documents tell a reader to do, as it is written there: every
// fenced or indented block of the README, and of the first page of each document in docs/.
//
// A block that is indented has commands for a shell. They run from top to bottom, one document
// after the other, in a copy of what git has of this repository, with an empty home, by a user who
// may write there and nowhere else; the programs are built, and in PATH. A daemon that a command
// starts runs until the next one is started, or the page ends, as a reader would have it. Variables
// that stand alone are those of an application, so one runs with them: it has OpenTelemetry's SDK,
// or sends what Datadog's tracers send, and the daemon must have counted all of it. What a fence
// shows is read by who it is for: Go is compiled and run, YAML is loaded, a question is put to a
// Prometheus where there is one. A command that is neither run nor in the list of elsewhere.go
// fails the test.
//
// For root the whole test runs with a network and a /run of its own, since the pages name ports,
// and a fresh machine has none of our directories. Each wait has a deadline and says what for.
package commands
