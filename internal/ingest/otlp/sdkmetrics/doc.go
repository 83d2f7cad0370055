// Package sdkmetrics reads the self-observability metrics of OpenTelemetry SDKs from forwarded OTLP metrics
// requests: how many spans the SDKs started, sampled, exported, and dropped before export. Only an SDK knows
// these numbers.
//
// # Input
//
// A metrics request in protobuf is read in one pass. The package uses only the sum metrics that SDKs report about
// their own spans: those of OpenTelemetry's semantic conventions (otel.sdk.span.*, otel.sdk.processor.span.*,
// otel.sdk.exporter.span.*), and the older ones of the Java SDK. It skips all other metrics.
//
// A series is a resource, a metric name and attributes. The package adds the increase of a cumulative series, and
// each report of a delta series once, even if an exporter retries the report. If a cumulative series started before
// the Accumulator, its first value is only the base of later ones, so that all sums cover the same period.
//
// # Concurrency
//
// An Accumulator is safe for concurrent use. One lock is enough, since a process exports its metrics about once per
// minute.
//
// # Limits
//
// An Accumulator stores MaxSeries series of 48 bytes each. One series more clears all of them; each continuing series
// then loses its increase during one report.
package sdkmetrics
