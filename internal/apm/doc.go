// Package apm is, to a tracer, the Datadog agent: it takes the traces that any
// tracer of today sends, counts their spans as the agent would, and hands the
// untouched bodies on to the real agent, told that they are counted. A tracer
// needs one setting, where the agent is, and no change.
//
// # Counting
//
// Package traces makes batches of snapshots of a body, and package clientstats groups of
// a body of statistics. Both are published as those of a tracer that speaks our
// protocol: with the same keys, budgets, rings and books.
//
// # What is not counted here
//
// A request is counted whole or not at all, because it can be marked as counted
// only whole. What can't be read, or holds what only the agent can judge, or finds
// no room, goes on to the agent without a mark, and the agent counts it: the books
// say left_to_agent. So nothing is lost here, and nothing is counted twice.
//
// # The way of a request
//
// The goroutine of a request reads the body into a buffer of a pool that is
// bounded in all, counts it, and forwards it. Counting is bounded by the
// processor alone: it waits for no ring and no network. Everything that is neither
// traces nor statistics streams through in both directions, unbuffered. A panic while counting
// costs that request its count, and its body is forwarded all the same.
package apm
