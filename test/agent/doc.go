// Package agent is the module of everything that starts the real Datadog agent, so that
// what the agent depends on never enters the daemon's module.
//
//	realagent  the agent within a test, its output captured
//	stats      the daemon's statistics beside those that the agent counts itself
//	traces     what the daemon counts of traces beside the agent's own code
//	pod        what a whole pod pays for its statistics, whoever counts them
//	tracers    tracers as they are published, with the daemon in between and without it
//
// `go mod tidy` fails here, because the agent's own tests import a module that the
// module proxy does not have; `go mod tidy -e` writes all that is needed.
package agent
