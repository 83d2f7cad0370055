// Package points makes points of sealed cycles, which are the values of one series of a metric, for all
// exporters of metrics. It sends nothing.
//
//	rows of a cycle -> grouper: the rows of one series -> Reader: its points
//	                                                   -> Running: its running totals
//
// A series has one resource, which sent the spans, and one list of attributes. It can have several rows:
// those of its buckets, and those of keys that differ only in fields that the Dialect leaves out. A series
// has at most two points per cycle, for the spans without an error and those with one; each has a base-2
// exponential histogram in seconds.
//
// Resources and attributes are bytes in a format: OTLP's KeyValue messages, or labels (Config.Labels).
// Equal lists are equal bytes.
//
// Concurrency: one user at a time, the goroutine that encodes.
//
// Limits: some 60 bytes per row, and the running totals of totals.Limits.
package points
