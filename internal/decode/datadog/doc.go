// Package datadog reads the bodies of the agent's four trace formats into a table of spans.
//
// A Decoder walks a body in place, once. Of each span it keeps the fields that a rule may need,
// and of its tags those whose names it is given. Whatever else stands in the body is stepped
// over, but must be msgpack. A format is a file: v04.go, v05.go, v07.go and v1.go say what is of
// that format alone; fields.go, tags.go, values.go and strings.go are what they share. Each value
// is read in its most common form first, without the general reader, which reads all others.
//
// A trace is a group. What a trace says of itself in the tags of its spans (its origin and
// priority, the environment and version of its process) stands in its group and in the sender
// as the agent would have it.
//
// # All or nothing
//
// A body is read whole or not at all. Decode fails for what is not its format, and for what no
// tracer writes and only the agent can judge.
//
// # Bounds
//
// Spans, tags, strings and the text that is looked at are bounded by the table's limits.
//
// # Threading
//
// One goroutine at a time uses a Decoder. Its memory is used again for the next body, and
// nothing is allocated a span once it is warm.
package datadog
