// Package tracers runs unmodified, published tracers with the daemon and the real Datadog agent. A
// tracer's traffic through the daemon must have the same result in the agent as the same traffic
// without the daemon.
package tracers
