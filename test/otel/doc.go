// Package otel has OpenTelemetry's SDKs, unmodified, export to the daemon's own
// program: each is told where by OTEL_EXPORTER_OTLP_ENDPOINT alone, as any application is. It is a
// module of its own, so that the SDK and gRPC never enter the daemon's.
//
// Every span that the SDK has ended must be counted once, by each of its exporters (HTTP with
// protobuf and gRPC, with gzip and without), and what goes on must be what a real
// receiver reads.
//
// The SDK for Go is a part of these tests. Those of other languages, with the tag languages,
// are in two small web applications, of which one calls the other, each with a daemon
// of its own. They write their spans to their output too, by an exporter that they bring,
// and what the daemons count and hand on must be what is written there.
package otel
