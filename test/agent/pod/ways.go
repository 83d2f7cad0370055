package main

// way is one to have a pod's statistics counted. Another one is another line here.
type way struct {
	name   string
	tracer tracer
	// The tracer counts itself, by what its makers gave it or by our extension.
	computes bool
	// The tracer makes traces of one request in ten and nothing of the others. Datadog's never does:
	// it makes the traces that it does not keep all the same.
	samples bool
	daemon  []string // the daemon's flags, where there is one
	spans   int      // of a request that count, where they are others than of its application
}

// tracer is who makes the spans.
type tracer int

const (
	none tracer = iota
	datadog
	opentelemetry
)

// One trace of ten is kept in all of them.
const kept = 0.1

var ways = []way{
	{name: "no tracer"},
	{name: "tracer counts", tracer: datadog, computes: true},
	{name: "agent counts", tracer: datadog},
	{name: "spanstatsd counts", tracer: datadog, daemon: []string{"--drop-unsampled=off"}},
	{name: "and drops unsampled", tracer: datadog, daemon: []string{"--drop-unsampled=auto"}},
}

// What OpenTelemetry's agent for Java sends is sampled by itself, by the agent, or by the daemon. An
// agent counts of it no spans within a service that are neither a client's nor a server's.
var otelWays = []way{
	{name: "OTel samples, who counts sees one in ten", tracer: opentelemetry, samples: true, spans: 3},
	{name: "OTel exports all, agent counts", tracer: opentelemetry, spans: 3},
	{name: "OTel exports all, spanstatsd counts", tracer: opentelemetry, daemon: []string{"--otlp-keep=0.1"}},
	{
		name: "OTel samples, our extension counts", tracer: opentelemetry, samples: true, computes: true,
		daemon: []string{},
	},
}
