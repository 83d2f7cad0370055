// Package otlpspans generates random OTLP trace requests with attributes that are significant to the
// Datadog agent's OTLP ingest.
package otlpspans

import (
	"math/rand/v2"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// names lists attributes that the agent's ingest or a statistics rule reads, and some other ones.
var names = []string{
	"service.name", "operation.name", "resource.name", "span.type", "http.request.method", "http.method",
	"url.template", "http.route",
	"http.response.status_code", "http.status_code", "db.system.name", "db.system", "db.statement",
	"db.query.text", "db.namespace", "db.name",
	"messaging.system", "messaging.operation", "messaging.destination", "messaging.destination.name",
	"rpc.system", "rpc.system.name", "rpc.service",
	"rpc.method", "rpc.grpc.status_code", "grpc.code", "rpc.response.status_code", "faas.invoked_provider",
	"faas.invoked_name", "faas.trigger",
	"graphql.operation.type", "graphql.operation.name", "network.protocol.name", "peer.service",
	"server.address", "net.peer.name", "_dd.measured",
	"_dd.base_service", "_sample_rate", "deployment.environment.name", "service.version", "version", "env",
	"out.host", "thread.id", "http.server_name",
	"client.address", "http.client_ip", "http.request.header.x",
}

// ofProcess lists the attributes that apply to a complete process. If its spans disagree, the agent uses
// the value of any of them.
var ofProcess = []string{"deployment.environment.name", "service.version", "version", "env"}

// ofHost lists further resource attributes from which the ingest determines the host.
var ofHost = []string{
	"host", "datadog.host.name", "cloud.provider", "k8s.node.name", "k8s.cluster.name", "host.id",
	"host.name", "cloud.account.id", "container.id", "telemetry.sdk.language",
}

// pick returns one of the values at random.
func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func (c Config) put(r *rand.Rand, to pcommon.Map, names []string) {
	name := pick(r, names...)
	switch r.IntN(8) {
	case 0:
		to.PutInt(name, pick[int64](r, 0, 1, 200, 5, -1))
	case 1:
		to.PutDouble(name, pick(r, 1, 0.5, 200, 1e30, -1e-9))
	case 2:
		to.PutBool(name, r.IntN(2) == 0)
	case 3:
		to.PutStr(name, text(r, c.IsLong))
	case 4:
		// The agent obfuscates the resources of these spans, in statistics and in traces.
		if c.HasDatabases {
			to.PutStr(name, pick(r, "postgresql", "redis", "CASSANDRA"))
		}
	default:
		to.PutStr(name, pick(r, "", "GET", "_OTHER", "/carts/{id}", "grpc", "aws-api", "Kafka", "PUBLISH it!",
			"5", "NOT_FOUND", "200", "Ünï ✓ code__x_"))
	}
}

// text returns a string with letters of several scripts, symbols, and invalid characters.
func text(r *rand.Rand, isLong bool) string {
	var all []rune
	most := 16
	if isLong {
		most = 1 << r.IntN(9)
	}
	for range r.IntN(most) {
		all = append(all, pick(r, 'a', 'Z', '_', ' ', '.', ':', '/', '-', '5', 'Ä', 'ß', 'ſ', 'Ⱥ', '✓', '漢',
			'🍣', '\uFFFD', rune(r.IntN(0x3000))))
	}
	return string(all)
}

// Config configures the generation of random spans.
type Config struct {
	IsLong       bool // also use long strings
	HasDatabases bool // include databases whose resources the agent obfuscates
	// Began is the start time of the spans; zero means a time long ago.
	Began time.Time
	// OneEach omits the attributes for which the agent uses the value of any span in a payload.
	OneEach bool
}

// Random returns a request. The agent finds exactly one root in each of its traces.
func Random(r *rand.Rand, c Config) ptrace.Traces {
	began := pcommon.Timestamp(1_790_000_000_000_000_000)
	if !c.Began.IsZero() {
		began = pcommon.NewTimestampFromTime(c.Began)
	}
	ofSpans := names
	if c.OneEach {
		ofSpans = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return slices.Contains(ofProcess, name)
		})
	}
	all := ptrace.NewTraces()
	for range 1 + r.IntN(3) {
		resource := all.ResourceSpans().AppendEmpty()
		for range r.IntN(4) {
			c.put(r, resource.Resource().Attributes(), slices.Concat(names, ofHost))
		}
		resource.Resource().Attributes().PutStr("telemetry.sdk.version", "1.2")
		for range r.IntN(3) {
			scope := resource.ScopeSpans().AppendEmpty()
			if r.IntN(4) == 0 {
				scope.Scope().SetName("tracer")
				for range r.IntN(4) {
					c.put(r, scope.Scope().Attributes(), ofSpans)
				}
			}
			for range r.IntN(10) {
				s := scope.Spans().AppendEmpty()
				s.SetName(pick(r, "a span", "", "GET /x"))
				s.SetKind(ptrace.SpanKind(r.IntN(6)))
				s.SetTraceID(pcommon.TraceID{7: byte(r.IntN(2)), 15: byte(1 + r.IntN(3))})
				s.SetSpanID(pcommon.SpanID{0: 1, 7: byte(r.IntN(256))})
				if r.IntN(2) == 0 {
					s.SetParentSpanID(pcommon.SpanID{7: byte(1 + r.IntN(9))})
				}
				s.SetStartTimestamp(began)
				s.SetEndTimestamp(began + pcommon.Timestamp(r.Int64N(1e9)-1e8))
				s.Status().SetCode(ptrace.StatusCode(r.IntN(3)))
				s.TraceState().FromRaw(pick(r, "", "", "ot=th:8", "ot=p:3", "ot=p:63", "ot=th:c;p:1",
					"vendor=x", "what"))
				for range r.IntN(12) {
					c.put(r, s.Attributes(), ofSpans)
				}
			}
		}
	}
	for _, resource := range all.ResourceSpans().All() {
		addRoots(resource)
	}
	return all
}

// addRoots adds a root to each trace without one: if the parents of several spans are missing, the
// agent takes any of these spans as the root.
func addRoots(resource ptrace.ResourceSpans) {
	last, hasRoot := map[pcommon.TraceID]ptrace.Span{}, map[pcommon.TraceID]bool{}
	for _, scope := range resource.ScopeSpans().All() {
		for _, s := range scope.Spans().All() {
			id := s.TraceID()
			clear(id[:8]) // Datadog ignores this half of the trace ID
			last[id] = s
			hasRoot[id] = hasRoot[id] || s.ParentSpanID().IsEmpty()
		}
	}
	for id, s := range last {
		if !hasRoot[id] {
			s.SetParentSpanID(pcommon.SpanID{})
		}
	}
}
