package traces

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/opentelemetry-mapping-go/otlp/attributes"
	pb "github.com/DataDog/datadog-agent/pkg/proto/pbgo/trace"
	"github.com/DataDog/datadog-agent/pkg/trace/api"
	"github.com/DataDog/datadog-agent/pkg/trace/config"
	"github.com/DataDog/datadog-agent/pkg/trace/info"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-agent/pkg/trace/timing"
	"github.com/DataDog/datadog-agent/pkg/trace/traceutil/normalize"
	"github.com/DataDog/datadog-agent/pkg/trace/transform"
	"github.com/DataDog/datadog-go/v5/statsd"
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
	"github.com/spanstatsd/spanstatsd/test/agent/otlpspans"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric/noop"
)

// repaired is a text as the readers of msgpack repair it, on one side only.
func repaired(text string) string { return string([]rune(text)) }

// isNumber says whether statistics are made of a tag that is a number.
func isNumber(tag string) bool {
	return strings.Contains(tag, "status") || isStatusOfGRPC(tag) || isNumberAlone(tag)
}

// isNumberAlone says whether they are made of nothing else.
func isNumberAlone(tag string) bool { return tag == "_dd.measured" || tag == "_sample_rate" }

// isStatusOfGRPC says whether it is a status that is taken from a number where there is no text.
func isStatusOfGRPC(tag string) bool {
	return strings.Contains(tag, "grpc.") || tag == "rpc.response.status_code"
}

// shown is all that is compared of a span.
func shown(s *pb.Span, wanted map[string]bool) string {
	service, _ := normalize.NormalizeService(s.Service, "")
	name, _ := normalize.NormalizeName(s.Name)
	var tags []string
	for k, v := range s.Meta {
		if wanted[k] && v != "" && !isNumberAlone(k) {
			tags = append(tags, k+"="+repaired(v))
		}
	}
	for k, v := range s.Metrics {
		if wanted[k] && isNumber(k) && (!isStatusOfGRPC(k) || s.Meta[k] == "") {
			tags = append(tags, fmt.Sprint(k, "=", v))
		}
	}
	slices.Sort(tags)
	return fmt.Sprintf("%d/%d/%d %s|%s|%s|%s %d+%d !%d %q", s.TraceID, s.SpanID, s.ParentID,
		repaired(service), repaired(name), repaired(s.Resource), repaired(s.Type), s.Start, s.Duration,
		s.Error, tags)
}

// oldPolicy is agentPolicy for the room that still counts OTLP by the agent's rules.
func oldPolicy(t testing.TB, conf *config.AgentConfig) *traces.Policy {
	t.Helper()
	kinds := []string{"client", "consumer", "producer", "server"}
	policy, ok := traces.NewPolicy(conf.PeerTagsCache().Keys, kinds, nil, traces.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	return policy
}

// listed are the batches of a counter as lists.
func listed(c *traces.Counter) iter.Seq2[string, *span.Batch] {
	messages := func(yield func(span.Origin, []byte) bool) {
		for service, body := range c.Batches {
			if !yield(span.Origin{Service: service}, body) {
				return
			}
		}
	}
	return func(yield func(string, *span.Batch) bool) {
		for origin, batch := range admit.Walked(messages) {
			if !yield(origin.Service, batch) {
				return
			}
		}
	}
}

// translated holds a translator to the agent's code.
type translated struct {
	policy     *traces.Policy
	translator *oteltraces.Translator
	counter    *traces.Counter
	conf       *config.AgentConfig
	wanted     map[string]bool
}

func newTranslated(t testing.TB) *translated {
	t.Helper()
	o := makeOracle()
	c := &translated{
		policy: oldPolicy(t, o.conf), counter: traces.NewCounter(), conf: config.New(),
		wanted: map[string]bool{},
	}
	var err error
	if c.translator, err = oteltraces.NewTranslator(c.policy.Tags()); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.policy.Tags() {
		c.wanted[name] = true
	}
	return c
}

// theirs are the spans of a request as the agent's ingest makes them, by resource.
func (c *translated) theirs(all ptrace.Traces) (want []map[string]int) {
	for _, resource := range all.ResourceSpans().All() {
		_, filtered := attributes.ConsumeContainerTagsFromResource(resource.Resource())
		one := map[string]int{}
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				one[shown(transform.OtelSpanToDDSpan(s, filtered, scope.Scope(), c.conf), c.wanted)]++
			}
		}
		if len(one) > 0 {
			want = append(want, one)
		}
	}
	return want
}

// ours are those of a translated request, each payload of which the counter can read.
func (c *translated) ours(t testing.TB) (got []map[string]int) {
	t.Helper()
	for left := c.translator.Written(); len(left) > 0; {
		var p pb.TracerPayload
		var err error
		if left, err = p.UnmarshalMsg(left); err != nil {
			t.Fatal(err)
		}
		one := map[string]int{}
		for _, chunk := range p.Chunks {
			for _, s := range chunk.Spans {
				if s.TraceID != chunk.Spans[0].TraceID {
					t.Fatal("two traces are in one chunk")
				}
				one[shown(s, c.wanted)]++
			}
		}
		got = append(got, one)
	}
	return got
}

// compare compares what both make of a request.
func (c *translated) compare(t testing.TB, all ptrace.Traces) (spans int) {
	t.Helper()
	got, want := c.ours(t), c.theirs(all)
	if len(got) != len(want) {
		t.Fatalf("%d payloads, want %d", len(got), len(want))
	}
	for i := range want {
		for name, n := range want[i] {
			if spans += n; got[i][name] != n {
				t.Errorf("only the agent has\n%s", name)
			}
		}
		for name, n := range got[i] {
			if want[i][name] != n {
				t.Errorf("only the translator has\n%s", name)
			}
		}
	}
	return spans
}

// TestSpansAreTranslatedAsTheAgentsIngestDoes, payload by payload.
func TestSpansAreTranslatedAsTheAgentsIngestDoes(t *testing.T) {
	c, spans := newTranslated(t), 0
	for seed := range uint64(400) {
		all := otlpspans.Random(rand.New(rand.NewPCG(seed, 1)),
			otlpspans.Config{IsLong: true, HasDatabases: true})
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(all)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.translator.Translate(body, false); err != nil {
			t.Fatal(err)
		}
		if spans += c.compare(t, all); t.Failed() {
			t.Fatalf("case %d", seed)
		}
		if err := c.counter.Count(traces.FormatIngest, c.translator.Written(), "", false,
			c.policy); err != nil {
			t.Fatal(err)
		}
	}
	if spans < 2000 {
		t.Errorf("only %d spans were compared", spans)
	}
}

// ingest is what the agent would count of a request that it takes itself.
func (o *oracle) ingest(t testing.TB, all ptrace.Traces, since time.Time) map[string]total {
	out := make(chan *api.Payload, 1)
	settings := component.TelemetrySettings{MeterProvider: noop.NewMeterProvider()}
	translator, err := attributes.NewTranslator(settings)
	if err != nil {
		t.Fatal(err)
	}
	receiver := api.NewOTLPReceiver(out, o.conf, &statsd.NoOpClient{}, &timing.NoopReporter{})
	receiver.SetOTelAttributeTranslator(translator)
	o.agent.Concentrator = stats.NewConcentrator(o.conf, noStats{}, since, &statsd.NoOpClient{})
	for _, resource := range all.ResourceSpans().All() {
		if _, err := receiver.ReceiveResourceSpans(t.Context(), resource, http.Header{}, nil); err != nil {
			t.Fatal(err)
		}
		payload := <-out
		payload.Source = info.NewReceiverStats(false).GetTagStats(payload.Source.Tags)
		o.agent.Process(payload)
	}
	return o.totals(t)
}

// TestRequestsOfOTLPAreCountedAsByTheAgent: from the bytes of random requests to groups, the
// translator and the counter make what the agent's ingest, its processing and its
// concentrator make.
func TestRequestsOfOTLPAreCountedAsByTheAgent(t *testing.T) {
	o := makeOracle()
	policy := oldPolicy(t, o.conf)
	translator, err := oteltraces.NewTranslator(policy.Tags())
	if err != nil {
		t.Fatal(err)
	}
	c, since, groups, left := traces.NewCounter(), time.Unix(1_789_999_000, 0), 0, 0
	for seed := range uint64(500) {
		all := otlpspans.Random(rand.New(rand.NewPCG(seed, 2)), otlpspans.Config{})
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(all)
		if err != nil {
			t.Fatal(err)
		}
		withinOneBucket(func() {
			if err := translator.Translate(body, false); err != nil {
				t.Fatal(err)
			}
			if c.Count(traces.FormatIngest, translator.Written(), "", false, policy) != nil {
				left++
				return
			}
			mine := ours(t, listed(c), "", since)
			theirs := o.ingest(t, all, since)
			groups += len(mine)
			for key := range mine {
				if mine[key] != theirs[key] {
					for key := range theirs {
						if _, ok := mine[key]; !ok {
							t.Errorf("case %d: only the agent has %s %v", seed, key, theirs[key])
						}
					}
					t.Fatalf("case %d: %s\n ours %v\nagent %v", seed, key, mine[key], theirs[key])
				}
			}
			for key := range theirs {
				if _, ok := mine[key]; !ok {
					t.Fatalf("case %d: only the agent has %s %v", seed, key, theirs[key])
				}
			}
		})
	}
	t.Logf("%d groups, %d requests left to the agent", groups, left)
	if groups < 2000 || left > 100 {
		t.Errorf("only %d groups were compared, and %d requests left: this shows little", groups, left)
	}
}
