// Package apm is, to a tracer, the Datadog agent: it takes the traces that any tracer of
// today sends, has their spans counted, and forwards the untouched bodies to the real
// agent, marked as counted. A tracer needs one setting, where the agent is, and no change.
//
// # A request's way
//
// It owns HTTP and nothing else. Package door has what it shares with others that
// take traces over HTTP: its limiter admits connections. net/http serves them; but a plain request with traces, which is what tracers
// send all day, is answered by the connection itself while net/http waits for the next one
// (plain.go, and package http1).
// Where anything takes its time, or is odd, net/http goes on with it. A request to one of the trace endpoints becomes a job: its body is read into
// memory that is bounded in all, and when there is a connection to the agent, a
// traces.Counter makes batches of snapshots of it. Those are published as the batches of a
// tracer that speaks our own protocol are, with the same keys, budgets, rings and books.
// Statistics that a tracer computed itself are read by package clientstats and merged.
// Everything else streams through in both directions, unbuffered.
//
// A held request goes on in one write of head and body, on a connection of its own that is
// kept for the next one, and its answer is read by the goroutine that wrote it. The reverse
// proxy of net/http, which carries what streams, needs two goroutines more for that, whose
// wake-ups cost more than carrying the bytes; docs/benchmarks.md has the figures.
//
// # What is not counted here
//
// A request is counted whole or not at all, because only a whole request can be marked.
// What can't be read, or holds what only the agent can judge, or finds no room, goes on to
// the agent without a mark, and the agent counts it; the books say left_to_agent. A body
// that was counted is recognised when its tracer sends it again, until the tracer is known
// to have the answer: package bodies remembers it, and finds that out.
// So nothing is lost here, and nothing is counted twice. A panic while counting costs that
// request its count, and its body is forwarded all the same.
//
// # Threading
//
// The goroutine of a request does all of its work, and has the connection to the agent
// meanwhile. Of one that net/http serves there is one beside it that watches for the tracer's
// leaving, and one that looks for an early answer while a body takes long to be written; both
// are waited for, and the end of the request's context closes the connection to the agent. Counting waits for no ring and no network, only for one of the Counters. One
// lock guards the publishers, one the Payload of statistics, one the connections that are
// kept, one the bodies that were counted; that one is held while a body is published. Spans
// that may become exemplars are proposed to their table while it is published, because only
// then their slots are there, and resolved when the agent has answered.
//
// # Bounds
//
// Connections, in all and of a process; a header's bytes and lines; the bytes of one body
// and of all; the counters and what each may hold; the publishers; the bodies that are
// remembered; the requests that wait for an agent that is away. Config.Memory adds them up.
package datadog
