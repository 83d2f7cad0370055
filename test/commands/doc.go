// Package commands executes the documentation like a reader: every fenced or indented block of the
// README, and of the first page of each document in docs/.
//
// An indented block contains shell commands. They run from top to bottom, one document after another,
// in a copy of the repository's files in git, with an empty home directory, as a user with no other
// write access. The programs are built and in PATH. As for a reader, a daemon runs until the next one
// is started or the page ends. A line that only sets variables configures an application: the test runs
// one with them, either with the OpenTelemetry SDK or imitating a Datadog tracer, and the daemon must
// count all of its spans. The language of a fenced block determines its treatment: Go is compiled and
// run, YAML is loaded, and queries are sent to a Prometheus if there is one. A command that is neither
// executed nor listed in elsewhere.go fails the test.
//
// As root, the whole test runs with its own network and its own /run, because the pages name ports, and
// because a fresh machine has none of this project's directories. Each wait has a deadline and names
// its condition.
package commands
