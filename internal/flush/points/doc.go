// Package points makes points of sealed cycles: what a metric says of one series, for every
// exporter that speaks of metrics and not of the agent's groups. It sends nothing.
//
//	rows of a cycle -> grouper: the rows of one series -> Reader: its points
//	                                                   -> Running: its running totals
//
// A series is what has one resource, who sent the spans, and one list of attributes. Several
// rows are of one: those of its buckets, and those of keys that differ in nothing that the
// Dialect says. A series has at most two points a cycle, of the spans without an error and of
// those with one; each has a base-2 exponential histogram in seconds.
//
// Resources and attributes are bytes: the protobuf of OTLP's KeyValues, which who sends OTLP
// copies, or labels (Config.Labels). Equal lists are equal bytes.
//
// Threading: one user at a time, the goroutine that encodes.
//
// Bounds: some 60 bytes a row, and the running totals of totals.Limits.
package points
