// Package otel has OpenTelemetry's SDK for Go, unmodified, export to the daemon's own
// program: it is told where by OTEL_EXPORTER_OTLP_ENDPOINT alone, as any application is. It is a
// module of its own, so that the SDK and gRPC never enter the daemon's.
//
// Every span that the SDK has ended must be counted once, by each of its exporters (HTTP with
// protobuf and gRPC, with gzip and without), and what goes on must be what a real
// receiver reads.
package otel
