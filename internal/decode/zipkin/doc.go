// Package zipkin decodes the spans of Zipkin's API v2, in JSON or in protobuf (ListOfSpans), into the
// table of a request of OTLP, so that they count by OpenTelemetry's conventions.
//
// Spans say in OpenTelemetry's words what the Collector's receiver has them say: tags are attributes,
// of the span or, where a resource has that name, of its sender. The local endpoint names the
// service, the remote one is peer.service. The tag error is an error whatever its value, as Zipkin
// has it, and a span without a kind is internal.
//
// A report without a duration is of a span that is not finished: another report of the same span
// brings it, so each span counts once. The server's side of a shared span is no root.
//
// # Bounds and threading
//
// As package decode/otlp. A body is read whole or not at all. One goroutine at a time uses a Decoder,
// whose memory is used again for the next body.
package zipkin
