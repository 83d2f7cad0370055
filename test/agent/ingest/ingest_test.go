package ingest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/attributes"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/traceutil/normalize"
	"github.com/DataDog/datadog-agent/pkg/trace/transform"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/traces"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// names are those of attributes that the ingest, or a rule of statistics, asks for, and some
// that nobody does.
var names = []string{
	"service.name", "operation.name", "resource.name", "span.type", "http.request.method", "http.method", "url.template", "http.route",
	"http.response.status_code", "http.status_code", "db.system.name", "db.system", "db.statement", "db.query.text", "db.namespace", "db.name",
	"messaging.system", "messaging.operation", "messaging.destination", "messaging.destination.name", "rpc.system", "rpc.system.name", "rpc.service",
	"rpc.method", "rpc.grpc.status_code", "grpc.code", "rpc.response.status_code", "faas.invoked_provider", "faas.invoked_name", "faas.trigger",
	"graphql.operation.type", "graphql.operation.name", "network.protocol.name", "peer.service", "server.address", "net.peer.name", "_dd.measured",
	"_dd.base_service", "_sample_rate", "deployment.environment.name", "service.version", "version", "env", "out.host", "thread.id", "http.server_name",
	"client.address", "http.client_ip", "http.request.header.x",
}

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

func put(r *rand.Rand, to pcommon.Map) {
	name := oneOf(r, names...)
	switch r.IntN(8) {
	case 0:
		to.PutInt(name, oneOf[int64](r, 0, 1, 200, 5, -1))
	case 1:
		to.PutDouble(name, oneOf(r, 1, 0.5, 200))
	case 2:
		to.PutBool(name, r.IntN(2) == 0)
	case 3:
		to.PutStr(name, randomText(r))
	default:
		to.PutStr(name, oneOf(r, "", "GET", "_OTHER", "/carts/{id}", "grpc", "aws-api", "Kafka", "postgresql", "redis", "PUBLISH it!", "5", "NOT_FOUND", "200", "Ünï ✓ code__x_", strings.Repeat("ab✓", 120)))
	}
}

// randomText has letters of several scripts, signs, and what is no character.
func randomText(r *rand.Rand) string {
	var text []rune
	for range r.IntN(1 << r.IntN(9)) {
		text = append(text, oneOf(r, 'a', 'Z', '_', ' ', '.', ':', '/', '-', '5', 'Ä', 'ß', 'ſ', 'Ⱥ', '✓', '漢', '🍣', '\uFFFD', rune(r.IntN(0x3000))))
	}
	return string(text)
}

func randomTraces(r *rand.Rand) ptrace.Traces {
	all := ptrace.NewTraces()
	for range 1 + r.IntN(3) {
		resource := all.ResourceSpans().AppendEmpty()
		for range r.IntN(4) {
			put(r, resource.Resource().Attributes())
		}
		resource.Resource().Attributes().PutStr("telemetry.sdk.version", "1.2")
		for range r.IntN(3) {
			scope := resource.ScopeSpans().AppendEmpty()
			if r.IntN(4) == 0 {
				scope.Scope().SetName("tracer")
				for range r.IntN(4) {
					put(r, scope.Scope().Attributes())
				}
			}
			for range r.IntN(10) {
				s := scope.Spans().AppendEmpty()
				s.SetName(oneOf(r, "a span", "", "GET /x"))
				s.SetKind(ptrace.SpanKind(r.IntN(6)))
				s.SetTraceID(pcommon.TraceID{7: byte(r.IntN(2)), 15: byte(1 + r.IntN(3))})
				s.SetSpanID(pcommon.SpanID{0: 1, 7: byte(r.IntN(256))})
				if r.IntN(2) == 0 {
					s.SetParentSpanID(pcommon.SpanID{7: byte(1 + r.IntN(9))})
				}
				s.SetStartTimestamp(1_790_000_000_000_000_000)
				s.SetEndTimestamp(pcommon.Timestamp(1_790_000_000_000_000_000 + r.Int64N(1e9) - 1e8))
				s.Status().SetCode(ptrace.StatusCode(r.IntN(3)))
				s.TraceState().FromRaw(oneOf(r, "", "", "ot=th:8", "ot=p:3", "ot=p:63", "ot=th:c;p:1", "vendor=x", "what"))
				for range r.IntN(12) {
					put(r, s.Attributes())
				}
			}
		}
	}
	return all
}

// shown is all that is compared of a span.
func shown(s *pb.Span, wanted map[string]bool) string {
	service, _ := normalize.NormalizeService(s.Service, "")
	name, _ := normalize.NormalizeName(s.Name)
	var tags []string
	for k, v := range s.Meta {
		if wanted[k] && v != "" {
			tags = append(tags, k+"="+v)
		}
	}
	for k, v := range s.Metrics {
		if wanted[k] {
			tags = append(tags, fmt.Sprint(k, "=", v))
		}
	}
	slices.Sort(tags)
	return fmt.Sprintf("%d/%d/%d %s|%s|%s|%s %d+%d !%d %q", s.TraceID, s.SpanID, s.ParentID, service, name, s.Resource, s.Type, s.Start, s.Duration, s.Error, tags)
}

// TestSpansAreTranslatedAsTheAgentsIngestDoes, payload by payload.
func TestSpansAreTranslatedAsTheAgentsIngestDoes(t *testing.T) {
	peers := []string{"_dd.base_service", "db.name", "db.namespace", "db.system", "http.server_name", "messaging.destination", "messaging.system", "net.peer.name", "out.host", "peer.service", "rpc.service", "server.address"}
	policy, ok := traces.NewPolicy(peers, []string{"client", "consumer", "producer", "server"}, nil, traces.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	c, err := oteltraces.NewTranslator(policy.Tags())
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, name := range policy.Tags() {
		wanted[name] = true
	}
	conf, counter, spans := config.New(), traces.NewCounter(), 0
	for seed := range uint64(400) {
		all := randomTraces(rand.New(rand.NewPCG(seed, 1)))
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(all)
		if err != nil {
			t.Fatal(err)
		}
		var want []map[string]int
		for _, resource := range all.ResourceSpans().All() {
			_, filtered := attributes.ConsumeContainerTagsFromResource(resource.Resource())
			one := map[string]int{}
			for _, scope := range resource.ScopeSpans().All() {
				for _, s := range scope.Spans().All() {
					one[shown(transform.OtelSpanToDDSpan(s, filtered, scope.Scope(), conf), wanted)]++
				}
			}
			if len(one) > 0 {
				want = append(want, one)
			}
		}
		if err := c.Translate(body); err != nil {
			t.Fatal(err)
		}
		var got []map[string]int
		for payload := range c.Payloads {
			var p pb.TracerPayload
			if left, err := p.UnmarshalMsg(payload); err != nil || len(left) > 0 {
				t.Fatalf("%d bytes are left: %v", len(left), err)
			}
			one := map[string]int{}
			for _, chunk := range p.Chunks {
				for _, s := range chunk.Spans {
					if s.TraceID != chunk.Spans[0].TraceID {
						t.Fatal("two traces are in one chunk")
					}
					one[shown(s, wanted)]++
					spans++
				}
			}
			got = append(got, one)
			if p.TracerVersion != "otlp-1.2" {
				t.Fatalf("version %q", p.TracerVersion)
			}
			if err := counter.Count(traces.FormatV07, payload, p.LanguageName, false, policy); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d payloads, want %d", len(got), len(want))
		}
		for i := range want {
			if !maps.Equal(got[i], want[i]) {
				for name, n := range want[i] {
					if got[i][name] != n {
						t.Errorf("%d: only the agent has\n%s", seed, name)
					}
				}
				for name, n := range got[i] {
					if want[i][name] != n {
						t.Errorf("%d: only the translator has\n%s", seed, name)
					}
				}
				t.FailNow()
			}
		}
	}
	if spans < 2000 {
		t.Errorf("only %d spans were compared", spans)
	}
}
