// Package datadog is, to a tracer, the Datadog agent: it takes the traces that any tracer of
// today sends, has their spans counted, and forwards the untouched bodies to the real
// agent, marked as counted. A tracer needs one setting, where the agent is, and no change.
//
// A request to one of the trace endpoints becomes a job, and when there is a connection to the agent,
// a Counter of the rules makes batches of snapshots of its body. Those are published as the batches of a
// tracer that speaks our own protocol are, with the same keys, budgets, rings and books.
// Statistics that a tracer computed itself are read by package clientstats and merged.
// Everything else streams through in both directions, unbuffered.
//
// What can't be read, or holds what only the agent can judge, or finds no room, goes on to
// the agent without a mark, and the agent counts it; the books say left_to_agent.
// So nothing is lost here, and nothing is counted twice. A panic while counting costs that
// request its count, and its body is forwarded all the same.
//
// # Threading
//
// As package door. Counting waits for one of the Counters, statistics for the one Payload.
//
// # Bounds
//
// Those of package door, the counters and what each may hold, and the Payload. Config.Memory adds
// them up.
package datadog
