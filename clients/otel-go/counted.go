package spanstatsd

import "go.opentelemetry.io/otel/attribute"

// ExporterHeaders returns the headers that mark exported requests as counted, for otlptracehttp.WithHeaders and
// otlptracegrpc.WithHeaders. A daemon that receives these requests over OTLP then does not count their spans again.
func ExporterHeaders() map[string]string {
	return map[string]string{"Datadog-Client-Computed-Stats": "yes"}
}

// CountedAttribute returns a resource attribute that marks all spans of a process as counted. It is needed only if a
// Datadog agent receives the exported spans, because a Collector in between removes the headers.
func CountedAttribute() attribute.KeyValue { return attribute.Bool("_dd.stats_computed", true) }
