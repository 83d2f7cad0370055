// Package tracers runs tracers as they are published, unmodified, against the
// daemon and the real Datadog agent: what the agent makes of a tracer's traffic
// through the daemon is what it makes of the same traffic without it.
package tracers
