// Package spans compares the daemon's parser for OTLP trace requests with the OTLP library, which
// decodes messages into objects.
//
// For random requests and mutations of them by a fuzzer, the parser must accept and refuse the same
// requests as the library, and count each span under the labels that simple look-ups in the library's
// objects find. Forwarded requests must decode to exactly the selected spans, otherwise unchanged. The
// exported series must be those of the Collector's spanmetrics connector, computed here as its source
// code defines.
//
// The library refuses strings that are not valid UTF-8, which the daemon and the Collector's own
// decoder accept. A second decoder therefore reads the same messages with bytes fields instead of
// strings.
package spans
