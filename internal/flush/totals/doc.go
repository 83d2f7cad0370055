// Package totals keeps running totals of series, for a destination that takes no deltas: a
// Prometheus that is sent OTLP directly. It knows nothing of spans, OTLP or its encoding: a
// series is a resource and attributes, each as bytes that are equal where they are.
//
//	Begin(window) -> Add(what the cycle has counted of a series), once or more -> Resources
//
// A series begins with the window in which it is counted first, and its start never changes.
// From then on it is there in each cycle, counted or not, for a reader forgets what it is not
// told of. It ends when it was not counted for Limits.Idle, or earlier, when there is no room
// for one that is counted now: then the one that was not counted for the longest time ends.
// One that is counted again begins anew, which its start says.
//
// No series ends in the cycle in which it is counted. What finds no room in a cycle is counted
// in one more series of its resource, that with the overflow attributes, as in the
// OpenTelemetry SDKs; beyond Limits.Resources of those, or where a resource is longer than
// Limits.ResourceBytes, in that of one common resource.
//
// A histogram adds up to what one histogram of all spans would be, at its scale. Classic buckets
// are added up beside it where Limits.Classic says that there are some.
//
// Delivery is known for whole cycles: Begin is told when all earlier cycles are settled. Undelivered is what a
// reader may lack of a series, and Lost what it may lack of series that have ended.
//
// Threading: one user at a time, the goroutine that encodes.
//
// Bounds: Limits, of which Memory says what they come to.
package totals
