// Package otlp is an exporter of package flush: it makes OTLP metrics of sealed cycles and
// brings them to a receiver, an OpenTelemetry Collector or a Prometheus, over HTTP.
//
// What it sends is one request a cycle, or several where one would be too long: for each
// resource, who sent the spans, the metrics of a dialect; for each series of it, the spans
// with one set of attributes, at most two points a metric, of the spans without an error
// and of those with one.
//
//	points of the rows, by package points -> writer: requests
//
// Points are deltas of base-2 exponential histograms in seconds. Their windows neither
// overlap nor leave gaps; see window. Where a receiver takes no deltas (Temporality) they
// are running totals, see package totals: then each cycle, also one without spans, has a
// point of every series there is.
//
// It writes protobuf without making the library's messages, of which there would be some
// for each attribute of each point, and reads the little that an answer says the same way.
//
// How a request gets there, and what certainly did not arrive, package post knows; answers is
// the table of what is tried again. A running total is sent again also where it may have
// arrived, for a second copy changes nothing.
//
// Threading: Encode is called by one goroutine at a time, and computes. Deliver makes one
// request; of running totals it raises how many spans of each series have arrived, an atomic
// number.
//
// Bounds: the length of a request before it is compressed (the caller's limit), the memory
// of an encoder (two requests, some 60 bytes a row, and the running totals of LimitTotals), one
// request's time (Timeout); of an answer, what package post bounds.
package otlp
