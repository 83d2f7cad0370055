// Package datadog implements the Datadog agent's API for tracers: it counts the spans of their requests and
// forwards the bodies to the agent, marked as counted. A tracer needs one setting, the agent's address.
//
// A traceRequest is a request to an endpoint for traces. A Counter of the rules turns its body into batches,
// which are published like those of a native client. A statsRequest has statistics that a tracer has computed
// itself. Package clientstats decodes them, and they are merged. All other requests, and bodies above the
// limits, stream through an httputil.ReverseProxy.
//
// A request that can't be parsed, that only the agent can interpret, or that finds no room is forwarded
// without the mark, and the agent counts it: its spans are dropped as left_to_agent. So no span is lost or
// counted twice. A request during which counting panics is forwarded without the mark as well, unless it was
// counted before.
//
// # Concurrency and limits
//
// The limits are those of package receiver. Counting waits for one of the Counters, and merging for the one
// Payload.
package datadog
