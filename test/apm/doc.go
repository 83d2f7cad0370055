// Package apm compares what the daemon makes of traces with what the Datadog
// agent's own code makes of the same bytes: the rules that client/rules offers to
// tracers' authors, and the walkers of internal/traces. It is a module of its own, so
// that the agent's dependencies never enter the daemon's.
package apm
