// Package otlp implements an OTLP receiver: it counts the spans of exported traces, and responds according to the
// OTLP specification. An SDK needs only the setting OTEL_EXPORTER_OTLP_ENDPOINT.
//
// One TCP port or Unix socket accepts OTLP/HTTP with protobuf and JSON, and OTLP/gRPC. net/http serves HTTP/1.1 and
// HTTP/2 without TLS. A unary gRPC call is a POST request with a prefix before the message; the status of its response
// is in trailers (grpc.go).
//
// Each request becomes a call (call.go). Its body is decompressed, and converted from JSON to protobuf. A reader then
// makes batches of span snapshots, according to OpenTelemetry's or the Datadog agent's rules (count.go, semantics.go).
// If --otlp-forward is set, the received bytes are forwarded to that upstream, and the upstream's response is
// translated for the SDK (forward.go). With --otlp-keep only a sample of the traces is forwarded, and with
// --otlp-mark=attribute the forwarded resources are marked as counted. Both write a new message (sample.go).
//
// Without an upstream, a call that can't be counted is refused with a status that makes the SDK retry if a retry can
// succeed.
//
// # Concurrency and limits
//
// Package receiver defines the limits, except for the HTTP/2 streams per connection. Each call needs one of a fixed
// number of workspaces while it is counted. Config.Memory includes the memory of the workspaces.
package otlp
