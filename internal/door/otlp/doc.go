// Package otlp is, to an OpenTelemetry SDK, a collector: it takes what any SDK of today
// exports, counts the spans of traces, and answers as the specification has it. An SDK needs one
// setting, OTEL_EXPORTER_OTLP_ENDPOINT, and no change.
//
// One port, or socket, speaks OTLP/HTTP with protobuf and JSON and OTLP/gRPC: net/http
// serves HTTP/1.1 and HTTP/2 without TLS, and a unary call of gRPC is a POST whose body has
// five bytes before the message and whose answer has its status in trailers (grpc.go). A request
// becomes a call: where it goes by its path, how it is encoded by its header (open.go).
// Its body is inflated, or read from JSON, where its spans have to be counted. A
// reader makes batches of snapshots of it, by one of two readings (reading.go). Then the call goes on
// to the collector of --otlp-forward, or ends here: the bytes that came, with what its protocol
// has around them, and its answer goes back in the words of who asked (forward.go). With --otlp-keep
// a share of its traces goes on, and with --otlp-mark=attribute what goes on says that it is counted:
// then the reader writes another message (keep.go).
//
// A body is counted before anybody else has it: who wants exact statistics wants them whatever
// becomes of the traces. Where traces end here, what can't be counted is refused, in the words that
// have the SDK keep it for another try where one helps.
//
// # Threading
//
// As package door. Counting waits for one of the workers, which senders are given in turn (turns.go).
//
// # Bounds
//
// Those of package door, streams of a connection, and workers and what each may hold. Config.Memory
// adds them up.
package otlp
