// Package agent is the module of all tests with the real Datadog agent, so that the agent's
// dependencies never become dependencies of the daemon.
//
//	realagent  the agent within a test, with captured output
//	stats      compares the daemon's statistics with the agent's own
//	traces     compares the daemon's reading of traces with the agent's code
//	pod        measures the cost of statistics for a complete pod
//	tracers    runs published tracers with and without the daemon in between
//
// `go mod tidy` fails here, because the agent's tests import a module that the module proxy does not
// have; `go mod tidy -e` writes everything necessary.
package agent
