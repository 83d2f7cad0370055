// Package otlp is the push exporter for OTLP metrics: it makes metrics of sealed cycles, and sends them to
// an OpenTelemetry Collector, or a Prometheus, over HTTP.
//
// A cycle becomes one request, or several if one would be too long: for each resource, the metrics of a
// dialect; for each series of it, at most two points per metric, for the spans without an error and those
// with one.
//
//	points of the rows (package points) -> deltaEncoder or totalsEncoder -> writer: requests
//
// Points are deltas of base-2 exponential histograms in seconds, or of histograms with explicit buckets.
// Their windows neither overlap nor leave gaps; see window. For a receiver that takes no deltas
// (Temporality) they are running totals, see package totals: then each cycle has a point of every series,
// even if nothing was counted.
//
// Requests are written, and responses read, field by field (package protolite), because the library's
// messages would take several allocations per attribute of each point. Package post sends requests, and
// reports which ones certainly did not arrive. The table answers defines which status codes are retried.
//
// Concurrency: Encode has one caller at a time. Deliver makes one request, and shares nothing with Encode.
//
// Limits: the length of a request before it is compressed (the caller's limit), the memory of an encoder
// (two requests, some 60 bytes per row, and the running totals of LimitTotals), the time of one request
// (Timeout); for a response, those of package post.
package otlp
