// Package semconv describes the metrics for durations that OpenTelemetry's semantic conventions define for
// instrumentations: the spans with the same duration, the attributes, and the bounds of the buckets.
//
// A span has at most one metric, that of its most specific attribute: a call of a database over HTTP is counted as a
// call of a database. Spans of other work, such as that of the application itself, have none.
//
// The package has no state.
package semconv

import (
	"cmp"
	"slices"
)

// Metric is a histogram of durations in seconds.
type Metric struct {
	Name       string
	Help       string    // description in the conventions
	Bounds     []float64 // upper bounds of the buckets in seconds
	Attributes []string  // those that the conventions require or recommend

	kinds     []string // kinds of the spans that it counts
	selector  string   // attribute that each of these spans has
	operation string   // messaging operation of these spans; optional
}

// NoMetric is the index of the metric of a span that has none.
const NoMetric = -1

// Metrics contains all metrics. If several apply to a span, the first one counts it.
var Metrics = [...]Metric{
	{
		Name: "gen_ai.client.operation.duration", Help: "GenAI operation duration.",
		Bounds: []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
		Attributes: []string{
			"gen_ai.operation.name", "gen_ai.provider.name", "error.type", "gen_ai.request.model", "server.port",
			"gen_ai.response.model", "server.address",
		},
		kinds: []string{"client", "internal"}, selector: "gen_ai.operation.name",
	},
	{
		Name: "messaging.process.duration", Help: "Duration of processing operation.", Bounds: requestBounds,
		Attributes: messagingAttributes,
		kinds:      messagingKinds, selector: "messaging.system", operation: "process",
	},
	{
		Name: "messaging.client.operation.duration",
		Help: "Duration of messaging operation initiated by a producer or consumer client.", Bounds: requestBounds,
		Attributes: append(slices.Clone(messagingAttributes), "messaging.operation.type"),
		kinds:      messagingKinds, selector: "messaging.system",
	},
	{
		Name: "rpc.server.call.duration",
		Help: "Measures the duration of an incoming Remote Procedure Call (RPC).", Bounds: requestBounds,
		Attributes: []string{"rpc.system.name", "error.type", "rpc.method", "rpc.response.status_code"},
		kinds:      []string{"server"}, selector: "rpc.system.name",
	},
	{
		Name: "rpc.client.call.duration",
		Help: "Measures the duration of an outgoing Remote Procedure Call (RPC).", Bounds: requestBounds,
		Attributes: []string{
			"rpc.system.name", "error.type", "rpc.method", "rpc.response.status_code", "server.address", "server.port",
		},
		kinds: []string{"client"}, selector: "rpc.system.name",
	},
	{
		Name: "db.client.operation.duration", Help: "Duration of database client operations.",
		Bounds: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10},
		Attributes: []string{
			"db.system.name", "db.collection.name", "db.namespace", "db.operation.name", "db.response.status_code",
			"error.type", "server.port", "db.query.summary", "db.stored_procedure.name", "network.peer.address",
			"network.peer.port", "server.address",
		},
		kinds: []string{"client", "internal"}, selector: "db.system.name",
	},
	{
		Name: "http.server.request.duration", Help: "Duration of HTTP server requests.", Bounds: requestBounds,
		Attributes: []string{
			"http.request.method", "url.scheme", "error.type", "http.response.status_code", "http.route",
			"network.protocol.name", "network.protocol.version",
		},
		kinds: []string{"server"}, selector: "http.request.method",
	},
	{
		Name: "http.client.request.duration", Help: "Duration of HTTP client requests.", Bounds: requestBounds,
		Attributes: []string{
			"http.request.method", "server.address", "server.port", "error.type", "http.response.status_code",
			"network.protocol.name", "network.protocol.version",
		},
		kinds: []string{"client"}, selector: "http.request.method",
	},
}

var (
	messagingKinds      = []string{"producer", "consumer", "client"}
	messagingAttributes = []string{
		"messaging.operation.name", "messaging.system", "error.type", "messaging.consumer.group.name",
		"messaging.destination.name", "messaging.destination.subscription.name", "messaging.destination.template",
		"server.address", "messaging.destination.partition.id", "server.port",
	}
)

// requestBounds are the bounds of metrics for requests.
var requestBounds = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}

// MetricOf returns the index in Metrics of the metric that counts a span of the given kind, or NoMetric. valueOf returns
// the value of an attribute of the span, or "" if the span does not have the attribute.
func MetricOf(kind string, valueOf func(attribute string) string) int {
	for i := range Metrics {
		m := &Metrics[i]
		hasSelector := valueOf(m.selector) != ""
		if m.IsCounted(kind) && hasSelector && m.countsOperation(valueOf) {
			return i
		}
	}
	return NoMetric
}

// countsOperation reports whether the metric counts the messaging operation of a span. valueOf returns the value of an
// attribute of the span.
func (m *Metric) countsOperation(valueOf func(attribute string) string) bool {
	if m.operation == "" {
		return true
	}
	operation := MessagingOperation(valueOf)
	if operation == "deliver" { // name in older conventions
		operation = "process"
	}
	return operation == m.operation
}

// MessagingOperation returns the messaging operation of a span, such as process: its type, or else its name.
func MessagingOperation(valueOf func(attribute string) string) string {
	return cmp.Or(valueOf("messaging.operation.type"), valueOf("messaging.operation.name"))
}

// IsCounted reports whether a metric of Metrics can count spans of the given kind.
func (m *Metric) IsCounted(kind string) bool { return slices.Contains(m.kinds, kind) }
