// Package apm is, to a tracer, the Datadog agent: it takes the traces that any
// tracer of today sends, counts their spans as the agent would, and hands the
// untouched bodies on to the real agent, told that they are counted. A tracer
// needs one setting, where the agent is, and no change.
//
// # Counting
//
// A body is walked once, in place, as msgpack: nothing is decoded into objects,
// and of a span's tags only those are noted that some rule asks for. A Counter
// makes of them what the agent's receiver and concentrator make (they are
// compared, body by body, in test/apm): what it mends, the trace's root, which
// spans are top-level, which are counted, their labels. The labels become the raw
// key of our own protocol, and the spans of a body the body of a spans message;
// from there on this is a tracer that speaks our protocol in process, with the
// same keys, budgets, rings and books as any other (ingest.Publisher).
//
// What nearly every value looks like is read in a quick way (quick.go), which knows
// nothing but where it is, and is left for the reader's (reader.go) wherever a value
// looks otherwise: the two read the same, or the quick one does not read at all. What
// became of a span's labels is remembered, within bounds, by the labels (memo.go).
//
// A Counter's memory is used again for each body, and nothing is allocated a span
// once it is warm. It has one user at a time.
//
// # What is not counted here
//
// A request is counted whole or not at all, because it can be marked as counted
// only whole. What can't be read, or holds what only the agent can judge, or finds
// no room, goes on to the agent without a mark, and the agent counts it: the books
// say left_to_agent. So nothing is lost here, and nothing is counted twice.
//
// # Statistics that tracers compute
//
// A payload of statistics is read in place, checked whole, and only then added to
// the current cycle (ingest.Publisher.Merge): each group's counts as they are, its
// sketches bin for bin. So only sketches of the agent's own mapping can be merged;
// every other payload goes on to the agent as it came, whole. One payload is read at
// a time, and what it can make us hold is bounded in groups, tags and bins.
//
// # The way of a request
//
// The goroutine of a request reads the body into a buffer of a pool that is
// bounded in all, counts it, and forwards it. Counting is bounded by the
// processor alone: it waits for no ring and no network. Everything that is neither
// traces nor statistics streams through in both directions, unbuffered. A panic while counting
// costs that request its count, and its body is forwarded all the same.
package apm
