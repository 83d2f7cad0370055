// Package totals keeps running totals of series, for destinations that take no deltas: a Prometheus that
// scrapes, or that is sent OTLP. It knows nothing of spans, OTLP or its encoding: a series is a
// resource, the number of a metric, and attributes. Resources and attributes are bytes that are equal if they are.
//
//	BeginCycle(window) -> Add(counts of a series in the cycle), once or more -> Resources
//
// A series begins with the window in which it is counted first, and its start never changes. From then on
// it is in each cycle, counted or not, because a reader forgets series that it is not sent. It ends when it
// was not counted for Limits.Idle, or after Limits.MinIdle to make room for one that is counted: then the one
// that was not counted for the longest time ends. A series that is counted after its end begins again, with another
// start.
//
// No series ends in the cycle in which it is counted. Spans of series beyond the limits are counted in an
// overflow series, as in the OpenTelemetry SDKs. Each resource can have one overflow series per metric, with the
// overflow attributes. If there are Limits.Resources of them already, or if the resource is longer than
// Limits.ResourceBytes, the spans are counted in the overflow series of one common resource and their metric.
//
// A histogram adds up to the histogram of all spans, at its scale. Classic buckets are added up too, if
// there are any.
//
// Delivery is tracked for whole cycles: an argument of BeginCycle reports that all earlier cycles are settled.
// Undelivered returns the spans of a series that a reader may lack, and Lost those of series that ended.
//
// Concurrency: one user at a time, the goroutine that encodes.
//
// Limits: those of Limits, which Memory adds up.
package totals
