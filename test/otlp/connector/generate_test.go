package connector

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// cut keeps the ten most significant bits of a duration, like the daemon.
func cut(d time.Duration) time.Duration {
	surplus := max(0, bits.Len64(uint64(d))-10)
	return d >> surplus << surplus
}

// attribute is a semantic convention attribute with possible values. old is its name before 2023.
type attribute struct {
	name, old string
	values    []any
}

// conventions lists the attributes that identify series.
var conventions = []attribute{
	{"http.request.method", "http.method", []any{"GET", "POST"}},
	{"http.route", "", []any{"/carts/{id}", "/"}},
	{"http.response.status_code", "http.status_code", []any{200, 404, 500}},
	{"rpc.system.name", "rpc.system", []any{"grpc", "connect_rpc"}},
	{"rpc.service", "", []any{"shop.Carts"}},
	{"rpc.method", "", []any{"Get", "shop.Carts/Get"}},
	{"rpc.grpc.status_code", "", []any{0, 14}},
	{"db.system.name", "db.system", []any{"postgresql", "redis", "Mixed Case"}},
	{"db.namespace", "db.name", []any{"shop", 7}},
	{"db.collection.name", "db.sql.table", []any{"carts", true}},
	{"db.operation.name", "db.operation", []any{"SELECT", "café"}},
	{"messaging.system", "", []any{"kafka"}},
	{"messaging.destination.name", "messaging.destination", []any{"orders", 1.5}},
	{"messaging.operation.type", "messaging.operation", []any{"process"}},
	{"messaging.operation.name", "", []any{"poll"}},
	{"peer.service", "", []any{"prices"}},
	{"server.address", "", []any{"db.example.com", "::1"}},
}

// dimensions returns the dimensions for the connector's configuration: all attributes, under both
// names.
func dimensions() (names []string) {
	for _, a := range conventions {
		if names = append(names, a.name); a.old != "" {
			names = append(names, a.old)
		}
	}
	return names
}

// fillSpan fills a span with a few attributes of current, old or mixed conventions.
func fillSpan(r *rand.Rand, s ptrace.Span, state string) {
	s.SetTraceID(pcommon.TraceID{0: 1, 8: byte(r.Uint32()), 15: byte(1 + r.IntN(200))})
	s.SetSpanID(pcommon.SpanID{0: byte(r.Uint32()), 7: byte(1 + r.IntN(200))})
	if r.IntN(2) == 0 {
		s.SetParentSpanID(pcommon.SpanID{7: 1})
	}
	s.SetName(oneOf(r, "GET /carts/{id}", "SELECT carts", "orders process", "Cart::add item", "Ünïcode",
		"http.request"))
	s.SetKind(ptrace.SpanKind(r.IntN(6)))
	s.Status().SetCode(ptrace.StatusCode(r.IntN(3)))
	s.TraceState().FromRaw(state)
	end := time.Now()
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	lasted := cut(time.Duration(r.Uint64N(1 << r.IntN(36))))
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-lasted)))
	if r.IntN(50) == 0 {
		// as after the clock was set back
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(time.Second)))
	}
	convention := r.IntN(3) // current, old, mixed
	for i := range conventions {
		if a := &conventions[i]; r.IntN(20) == 0 {
			name := a.name
			if a.old != "" && (convention == 1 || convention == 2 && r.IntN(2) == 0) {
				name = a.old
			}
			put(s.Attributes(), name, oneOf(r, a.values...))
			if a.old != "" && r.IntN(8) == 0 { // of an instrumentation that writes both
				put(s.Attributes(), a.name, oneOf(r, a.values...))
			}
		}
	}
	put(s.Attributes(), "url.full", fmt.Sprint("http://x/", r.Uint64()))
}

func put(to pcommon.Map, name string, value any) {
	if err := to.PutEmpty(name).FromRaw(value); err != nil {
		panic("BUG: " + err.Error())
	}
}

// sampled lists tracestates of spans with an integral adjusted count.
var sampled = []string{
	"", "ot=th:8", "ot=th:c", "ot=th:e", "vendor=x,ot=rv:80000000000000;th:0", "vendor=x",
	"ot=th:f",
}

// randomTraces returns a request from a few processes. The service named mixed has spans with different
// thresholds; each other process has one threshold, as with an SDK's sampler.
func randomTraces(r *rand.Rand) ptrace.Traces {
	traces := ptrace.NewTraces()
	for range 1 + r.IntN(2) {
		resource := traces.ResourceSpans().AppendEmpty()
		process := r.IntN(3)
		attributes := resource.Resource().Attributes()
		attributes.PutStr("service.name", []string{"Shop Ä", "carts", mixed}[process])
		attributes.PutStr("service.instance.id", fmt.Sprint("instance-", process+3*r.IntN(2)))
		if process > 0 {
			attributes.PutStr("service.namespace", "shop")
			attributes.PutStr("k8s.pod.name", fmt.Sprint("shop-5d9c7b8f4-x2x7q", r.IntN(2)))
			attributes.PutStr("k8s.namespace.name", oneOf(r, "prod", "Ünïcode"))
			attributes.PutStr("k8s.deployment.name", "shop")
			attributes.PutStr("container.id", "8f1d2c")
			attributes.PutStr("host.name", "node-1")
		}
		attributes.PutStr("service.version", "1.2.3")
		attributes.PutStr([]string{"deployment.environment.name", "deployment.environment"}[process%2], "prod")
		attributes.PutStr("telemetry.sdk.name", "opentelemetry")
		attributes.PutStr("telemetry.sdk.language", "java")
		attributes.PutStr("telemetry.sdk.version", "1.52.0")
		for range 1 + r.IntN(2) {
			scope := resource.ScopeSpans().AppendEmpty()
			for range r.IntN(80) {
				state := sampled[process]
				if process == 2 {
					state = oneOf(r, sampled...)
				}
				fillSpan(r, scope.Spans().AppendEmpty(), state)
			}
		}
	}
	return traces
}

// mixed is the service whose spans have different thresholds.
const mixed = "mixed"
