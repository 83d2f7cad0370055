// Package sdkmetrics hears what SDKs of OpenTelemetry say of their own spans, in metrics that pass by: how
// many they began, sampled, exported, and lost before anybody else had them. Nobody but an SDK knows these.
//
// # What it reads
//
// A request of metrics in protobuf, walked once, in which only sums are looked at that SDKs have for
// themselves: those of OpenTelemetry's conventions (otel.sdk.span.*, otel.sdk.processor.span.*,
// otel.sdk.exporter.span.*), and the older ones of Java. All else is stepped over.
//
// Such a sum is a series: who says it, its name, and its attributes. Of one that is cumulative what it grew
// by counts, of another each report once, whatever an exporter sends again. Of one that began before
// anybody listened the first value is only where growing begins, so that all sums are of the same time.
//
// # Threading
//
// A Listener has a lock, since a process sends its metrics once a minute.
//
// # Bounds
//
// MaxSeries series are remembered, of 48 bytes each. One more has all of them forgotten, and each that goes
// on loses what it grew by in one report.
package sdkmetrics
