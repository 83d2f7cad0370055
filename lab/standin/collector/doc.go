// Package collector is a stand-in for an OpenTelemetry Collector: it takes OTLP metrics over
// HTTP, for the demo and the tests.
//
// It is stricter than the real one, which hands on nearly everything. A request that is not
// what the specification says is refused with 400: another media type, a field that OTLP
// does not have or of another type, text that is no UTF-8. What would be taken and shown
// wrongly is taken too, and noted as a problem: a resource or a series that comes twice, an
// attribute that does, a histogram whose buckets are not its count, a window that overlaps
// the one before it or leaves a gap; see check.go. Points may be deltas or running totals,
// of which none falls, and none changes its start while it lives; see life.go.
//
// It shares no code with the encoder that it checks. Both use the library's functions for
// protobuf's wire format, and neither its messages.
//
// Threading: requests are served concurrently; one mutex guards the totals.
// Bounds: maxLives running totals, maxSeries series and one for all others, maxProblems
// problems, the size of a body, compressed and not. Requests are not kept; Config.OnRequest sees each.
package collector
