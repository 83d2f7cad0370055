// Package connector compares the daemon with the spanmetrics connector of the OpenTelemetry Collector,
// which runs in this process: the same OTLP requests must produce the same series.
//
// Random requests are sent to the daemon binary, in turn as protobuf and JSON over HTTP and over gRPC.
// The connector receives the same requests and is configured with all labels of the daemon as
// dimensions. The metrics that the daemon's OTLP exporter has sent by the end are compared with those
// of the connector: series, calls, counts, buckets and sums, exactly.
//
// Two differences are removed beforehand. The connector knows each attribute under one name, so
// attributes with older names are compared under the current names (present). Durations are chosen such
// that truncation to ten significant bits does not change them. Other deliberate differences are listed
// in docs/semantics.md, and differences_test.go has a span for each of them.
package connector
