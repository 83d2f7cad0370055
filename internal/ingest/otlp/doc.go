// Package otlp implements an OTLP receiver: it counts the spans of traces that SDKs export, and answers as the
// specification says. An SDK needs one setting, OTEL_EXPORTER_OTLP_ENDPOINT, and no change.
//
// One port, or socket, speaks OTLP/HTTP with protobuf and JSON, and OTLP/gRPC: net/http serves HTTP/1.1 and
// HTTP/2 without TLS, and a unary call of gRPC is a POST with a prefix before the message and the status in
// trailers (grpc.go). A request becomes a call (call.go). Its body is decompressed and translated
// from JSON as far as necessary, and a reader makes batches of snapshots of it, by one of two readings
// (count.go, reading.go). Then the bytes that came are forwarded to the collector of --otlp-forward, and its
// response is translated for the SDK (forward.go); or the call ends here. With --otlp-keep a share of the
// traces is forwarded, and with --otlp-mark=attribute the forwarded resources are marked as counted: then another message is
// written (sample.go).
//
// Without an upstream, a call that can't be counted is refused so that the SDK keeps it for a retry if
// one helps.
//
// # Concurrency and limits
//
// The limits are those of package receiver, and streams per connection. Counting waits for one of the workers; Config.Memory
// adds up their memory.
package otlp
