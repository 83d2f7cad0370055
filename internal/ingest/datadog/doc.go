// Package datadog implements the Datadog agent's API for tracers. It counts the spans of tracers' requests, and forwards
// the requests to the agent with a header that marks them as counted. A tracer needs only the setting of the agent's
// address.
//
// A traceRequest is a request to a trace endpoint. A Counter makes batches of its spans according to the agent's rules,
// and the batches are published like those of a native client. A statsRequest has statistics that a tracer has computed.
// Package clientstats decodes them, and they are merged into the daemon's own. All other requests, and bodies over the
// limits, are streamed through an httputil.ReverseProxy.
//
// Some requests can't be counted: they are unparsable, only the agent can interpret them, or a limit is reached. They
// are forwarded without the header, so that the agent counts them, and their spans are dropped here with the reason
// left_to_agent. So no span is lost or counted twice. A request is also forwarded without the header if counting it
// panics before it is counted.
//
// # Concurrency and limits
//
// Package receiver defines the limits. Each trace request needs one of a fixed number of Counters while it is counted.
// Only one request with statistics is merged at a time.
package datadog
