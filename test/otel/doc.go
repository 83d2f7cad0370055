// Package otel tests the daemon binary with unmodified OpenTelemetry SDKs. As in any application,
// OTEL_EXPORTER_OTLP_ENDPOINT alone tells an SDK where to export. The package is a separate module, so
// that the SDK and gRPC never become dependencies of the daemon.
//
// Every ended span must be counted once with each exporter of the SDK (HTTP with protobuf and gRPC,
// with gzip and without), and a real OTLP receiver must be able to read the forwarded spans.
//
// The applications are two small web servers, one of which calls the other, each with its own daemon.
// They also write their spans to standard output, and the counted and forwarded spans must match that
// output. The Go application is part of the regular tests; those in other languages have the build tag
// languages.
//
// In addition, three services that call one another, each with a sampler of its SDK, are compared with
// the OpenTelemetry sampling specification, which this package implements in the simplest way.
package otel
