// Package connector holds the daemon to the OpenTelemetry Collector's spanmetrics connector, the
// real one, in this process: the same requests of OTLP make the same series.
//
// Random requests are sent to the built daemon, as protobuf and JSON over HTTP and by gRPC in
// turn, and given to the connector, which has every label of ours among its dimensions. What the
// daemon's OTLP exporter sends when it has stopped is compared with what the connector makes of
// them: series, calls, counts, buckets and sums, exactly.
//
// Two things are made alike beforehand. The connector knows attributes by one name, so those
// that instrumentations have written under older ones are compared under their present ones
// (present). And durations are such that cutting them to ten significant bits changes nothing.
// Other deliberate differences are listed in docs/semantics.md, and differences_test.go has a span
// for each line of it.
package connector
