// Package otlp is, to an OpenTelemetry SDK, a collector: it takes what any SDK of today
// exports, counts the spans of traces, and answers as the specification has it. An SDK needs one
// setting, OTEL_EXPORTER_OTLP_ENDPOINT, and no change.
//
// # A request's way
//
// One port, or socket, speaks OTLP/HTTP with protobuf and JSON and OTLP/gRPC: net/http
// serves HTTP/1.1 and HTTP/2 without TLS, and a unary call of gRPC is a POST whose body has
// five bytes before the message and whose answer has its status in trailers (frame.go,
// reply.go). But a request of HTTP/1.1 that is plain, as those of SDKs are all day, is answered on
// its connection while net/http waits for the next one (plain.go, and package http1). A
// request becomes a call: where it goes by its path, how it is encoded by its
// header. Its body is read into memory that is bounded in all, inflated, or read from JSON
// where its spans have to be counted, and each of these has room of its own within the same bound. A
// reader makes batches of snapshots of it, by one of two readings (reading.go), and those are
// published as the batches of a tracer that speaks our own protocol are. Then the call goes on to the
// destination of --otlp-forward, or ends here: the bytes that came, with what its protocol
// has around them (outgoing.go; upstream.go for plain ones), and its answer goes back in the words of who asked
// (translate.go). With --otlp-keep a share of its traces goes on, and with --otlp-mark=attribute
// what goes on says that it is counted: then the reader writes another message (keep.go).
//
// # What is counted
//
// A body is counted whole or not at all, and before anybody else has it: who wants exact
// statistics wants them whatever becomes of the traces. An SDK sends a body again, byte
// for byte, when it got no answer or one that says so. package bodies remembers a body that
// was counted until its sender has an answer that ends the matter, so it is counted once.
// Where traces end here, what can't be counted is refused, in the words that have the SDK
// keep it for another try where one helps.
//
// Of spans that go on the slowest of their series may become exemplars: they are proposed to
// their table while they are published, and resolved when the destination has answered
// (exemplars.go).
//
// # Threading
//
// The goroutine of a request does all of its work, but for what net/http does beside it on a
// connection to the destination, and for one that looks whether the SDK has left while the answer
// to a plain one takes its time; the bytes of a body stay until that is over. Counting waits for no ring and no network, only
// for one of the readers. Locks are those of package bodies.
//
// # Bounds
//
// Connections, in all and of a process; streams of a connection; a header's bytes and
// lines; the bytes of one body and of all, also of what they are inflated to; the time that
// a body takes; connections to the destination, and requests that wait for it; readers and what each may hold; publishers; the bodies that are remembered.
// Config.Memory adds them up.
package otlp
