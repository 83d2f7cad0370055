// Package collector implements a mock OpenTelemetry Collector for the demo and the tests. It
// accepts OTLP metrics over HTTP.
//
// It is stricter than the real one, which forwards nearly everything. A request that violates
// the specification is rejected with 400: another media type, an unknown field, a field of the
// wrong type, text that is not UTF-8. A request that would be accepted but displayed wrongly is
// accepted and recorded as a problem: a duplicate resource, series or attribute, a histogram
// whose buckets don't add up to its count, a window that overlaps the previous one or leaves a
// gap; see check.go. Points can have delta or cumulative temporality. A cumulative total must
// not decrease or change its start; see life.go.
//
// It shares no code with the encoder that it checks. Both use the library's functions for
// protobuf's wire format, but not its messages.
//
// Concurrency: requests are served concurrently; one mutex guards the totals. Limits: maxLives
// cumulative series, maxSeries rows and one for all others, maxProblems problems, and the size
// of a body, compressed and decompressed. Requests are not kept; each is passed to
// Config.OnRequest.
package collector
