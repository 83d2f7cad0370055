package main

// variant is one way to count a pod's statistics. To add another one, add an entry to this table.
type variant struct {
	name   string
	tracer tracer
	// The tracer counts itself, with its own feature or with this project's extension.
	computes bool
	// The tracer samples one request in ten at its start and creates no spans for the others. Datadog's
	// tracers never do that: they create all spans and drop some traces afterwards.
	samples bool
	daemon  []string // daemon flags if there is a daemon
	spans   int      // counted spans per request if different from the application's
}

// tracer is the origin of the spans.
type tracer int

const (
	none tracer = iota
	datadog
	opentelemetry
)

// All variants keep one trace of ten.
const kept = 0.1

var variants = []variant{
	{name: "no tracer"},
	{name: "tracer counts", tracer: datadog, computes: true},
	{name: "agent counts", tracer: datadog},
	{name: "spanstatsd counts", tracer: datadog, daemon: []string{"--drop-unsampled=off"}},
	{name: "and drops unsampled", tracer: datadog, daemon: []string{"--drop-unsampled=auto"}},
}

// OpenTelemetry's Java agent sends traces sampled by itself, by the agent, or by the daemon. An agent
// does not count its internal spans.
var otelVariants = []variant{
	{name: "OTel samples, agent sees one in ten", tracer: opentelemetry, samples: true, spans: 3},
	{name: "OTel exports all, agent counts", tracer: opentelemetry, spans: 3},
	{name: "OTel exports all, spanstatsd counts", tracer: opentelemetry, daemon: []string{"--otlp-keep=0.1"}},
	{
		name: "OTel samples, our extension counts", tracer: opentelemetry, samples: true, computes: true,
		daemon: []string{},
	},
}
