// Package spans holds the daemon's walk of OTLP requests with traces to the library of
// OTLP's messages, which decodes them into objects.
//
// Of random requests, and of those that a fuzzer makes of them, the walk must take what the
// library takes, refuse what it refuses, and count each span under the labels that a plain
// look-up in the library's objects finds. What goes on must decode to exactly the spans that
// are wanted, with nothing else changed. And the series that come out of the exporter must be
// those of the Collector's spanmetrics connector, computed here as its source has it.
//
// The library refuses text that is no UTF-8, which the daemon and the Collector's own decoder
// take; so a second decoder has the same messages with bytes where there is text.
package spans
