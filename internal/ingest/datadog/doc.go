// Package datadog implements the trace API of the Datadog agent for tracers: it counts the spans of
// their requests and forwards the bodies to the real agent, marked as counted. A tracer needs one setting,
// the agent's address, and no change.
//
// A request to a trace endpoint is a traceRequest: a Counter of the rules makes batches of snapshots of its
// body, which are published as those of a client of the native protocol. Statistics that a tracer has
// computed itself are a statsRequest: package clientstats reads them, and they are merged. All other
// requests, and bodies above the limits, stream through a httputil.ReverseProxy.
//
// A request that can't be parsed, that only the agent can judge, or that finds no room is forwarded
// without the mark, and the agent counts it; the books say left_to_agent. So no span is lost or counted
// twice. A panic while counting costs a request its count, and its body is forwarded all the same.
//
// # Concurrency and limits
//
// The limits are those of package receiver. Counting waits for one of the Counters, merging for the one Payload.
package datadog
