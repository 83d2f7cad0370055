// Package traces walks the body of a request with traces, in any of the agent's four
// formats, and counts of its spans what the agent would count. A fifth is what package
// oteltraces writes of OTLP.
//
// # Walking and counting
//
// A Counter takes one body at a time. It first walks the whole body in place: of each
// span it keeps the fields that a rule needs, and of its tags those that some rule asks
// for. Nothing is decoded into objects; texts are places in the body. Then it counts
// trace by trace, as the agent's receiver and concentrator do: it mends what they mend,
// finds the trace's root, decides which spans are top-level and which are counted, and
// makes their keys.
//
// What comes out are batches of snapshots, one for each base service, in the form of
// our own protocol (package wire), and the origin that the payload states. Whoever
// publishes them treats them like those of a tracer that speaks our protocol.
//
// Where the policy asks for it, it also notes the counted spans of traces that sampling keeps,
// with what finds their ids: Counter.Kept.
//
// # Whose rules
//
// By default a span counts, and has its labels, by the agent's rules. A policy with
// Labels.OfTracer has the tracers' own instead: those by which the tracer of that language
// computes statistics itself. A rulebook a language holds all that differs; the walk, the
// loops and the cached keys know no language.
//
// # All or nothing
//
// A body is counted whole or not at all. Count fails for what it can't read, for what
// only the agent can judge, and for what would exceed a bound: the body is then left to
// the agent, which counts all of it.
//
// # Bounds
//
// Spans, tags, strings and the bytes of messages are bounded in proportion to the body
// and in all (CounterBytes). The bytes of text that are looked at are bounded too, since
// two of the formats let every span refer to a string that the body holds once.
//
// # Threading
//
// One goroutine at a time uses a Counter. Its memory is used again for the next body,
// and nothing is allocated a span once it is warm. A Policy never changes.
package traces
