// Package datadog counts the spans of a body like the Datadog agent, or like the tracers that
// compute statistics themselves.
//
// # Counting
//
// A Counter processes one body at a time. It decodes the body into a table of spans. Then it counts
// trace by trace, like the agent's receiver and concentrator: it normalizes the spans, finds the
// root of the trace, decides which spans are top-level and which are counted, and makes their
// fingerprints. The result is one batch of snapshots per base service, and the origin that the
// payload states.
//
// If the policy asks for trace IDs, the counter also records the counted spans of sampled traces,
// see Counter.SampledSpans.
//
// # Rules
//
// By default a span counts, and has its labels, by the agent's rules. With Labels.OfTracer, the
// rules of the span's tracer apply instead: those by which the tracer of that language computes
// statistics. All differences between languages are in the rulebooks (rulebook.go).
//
// # All or nothing
//
// A body is counted completely or not at all. Count fails for a body that the decoder cannot read,
// that only the agent can interpret, or that exceeds a limit. The body is then left to the agent,
// which counts all of it.
//
// # Limits
//
// CounterBytes returns the maximum memory of a counter for a given length of bodies.
//
// # Concurrency
//
// One goroutine at a time may use a Counter. The next body reuses its memory, so that counting a
// span allocates nothing once the counter is warm. Label is called by the goroutine that publishes
// the batches, before the next body. A Policy is immutable.
package datadog
