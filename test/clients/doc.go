// Package clients runs applications whose OpenTelemetry SDKs have a span processor of clients/, with a real daemon that
// is stopped, killed and replaced meanwhile. An oracle in the application counts every ended span. The daemon's OTLP
// metrics must have the same numbers, whatever the SDK samples.
package clients
