// Package otel has OpenTelemetry's SDKs, unmodified, export to the daemon's own
// program: each is told where by OTEL_EXPORTER_OTLP_ENDPOINT alone, as any application is. It is a
// module of its own, so that the SDK and gRPC never enter the daemon's.
//
// Every span that the SDK has ended must be counted once, by each of its exporters (HTTP with
// protobuf and gRPC, with gzip and without), and what goes on must be what a real
// receiver reads.
//
// Whole applications are two small ones of the web, of which one calls the other, each with a
// daemon of its own. They write their spans to their output too, and what the daemons count and
// hand on must be what is written there. That of Go is a part of a change's tests; those of
// other languages have the tag languages.
//
// Three services that call one another, each under a sampler of its SDK, hold what is counted and what
// goes on against the specification of sampling, which stands in this package as naively as it reads.
package otel
