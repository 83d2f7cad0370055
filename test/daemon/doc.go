// Package daemon has tests only, of the daemon as a whole: of internal/daemon before stand-ins
// of an agent and of a Collector, and, in program/, of the program as a process. They are a
// module of their own because they need both the daemon and lab/, and the daemon's module
// needs nothing of lab/. `make test` runs them with all others.
package daemon
