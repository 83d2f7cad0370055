// Package datadog counts the spans of a body as the Datadog agent would, or as the tracers do that
// compute statistics themselves.
//
// # Counting
//
// A Counter takes one body at a time. It has it decoded into a table of spans, and then counts
// trace by trace, as the agent's receiver and concentrator do: it mends what they mend, finds the
// trace's root, decides which spans are top-level and which are counted, and makes their keys.
// What comes out are batches of snapshots, one for each base service, and the origin that the
// payload states.
//
// Where the policy asks for it, the counter also notes the counted spans of traces that sampling
// keeps, with what finds their ids: Counter.Kept.
//
// # Whose rules
//
// By default a span counts, and has its labels, by the agent's rules. A policy with
// Labels.OfTracer has the tracers' own instead: those by which the tracer of that language
// computes statistics itself. A rulebook a language holds all that differs (rulebook.go); the
// loops know no language.
//
// # All or nothing
//
// A body is counted whole or not at all. Count fails for what the decoder can't read, for what
// only the agent can judge, and for what would exceed a bound: the body is then left to the
// agent, which counts all of it.
//
// # Bounds
//
// CounterBytes is the most that a counter takes, by the length of bodies.
//
// # Threading
//
// One goroutine at a time uses a Counter. Its memory is used again for the next body, and nothing
// is allocated a span once it is warm. Label is called by the goroutine that publishes the batches, before the
// next body. A Policy never changes.
package datadog
