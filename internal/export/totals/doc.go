// Package totals keeps running totals of series, for destinations that take no deltas: a Prometheus that
// scrapes, or that is sent OTLP. It knows nothing of spans, OTLP or its encoding: a series is a resource
// and attributes, each as bytes that are equal if they are.
//
//	Begin(window) -> Add(what the cycle has counted of a series), once or more -> Resources
//
// A series begins with the window in which it is counted first, and its start never changes. From then on
// it is in each cycle, counted or not, because a reader forgets series that it is not sent. It ends when it
// was not counted for Limits.Idle, or earlier to make room for one that is counted: then the one that was
// not counted for the longest time ends. A series that is counted after its end begins again, with another
// start.
//
// No series ends in the cycle in which it is counted. Spans that find no room in a cycle are counted in one
// more series of their resource, with the overflow attributes, as in the OpenTelemetry SDKs; beyond
// Limits.Resources of those, or if a resource is longer than Limits.ResourceBytes, in that of one common
// resource.
//
// A histogram adds up to the histogram of all spans, at its scale. Classic buckets are added up too, if
// Limits.Classic says that there are any.
//
// Delivery is known for whole cycles: Begin is told when all earlier cycles are settled. Undelivered is
// what a reader may lack of a series, and Lost what it may lack of series that have ended.
//
// Concurrency: one user at a time, the goroutine that encodes.
//
// Limits: those of Limits, which Memory adds up.
package totals
