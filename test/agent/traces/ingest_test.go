package traces

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
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
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/test/agent/otlpspans"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/metric/noop"
)

// repaired returns a string as repaired by the msgpack readers. Only one side of the comparison needs
// it.
func repaired(text string) string { return string([]rune(text)) }

// isNumber reports whether statistics read the tag's numeric value.
func isNumber(tag string) bool {
	return strings.Contains(tag, "status") || isStatusOfGRPC(tag) || isNumberAlone(tag)
}

// isNumberAlone reports whether statistics read only the tag's numeric value.
func isNumberAlone(tag string) bool { return tag == "_dd.measured" || tag == "_sample_rate" }

// isStatusOfGRPC reports whether the tag is a gRPC status, which is read as a number if there is no
// string.
func isStatusOfGRPC(tag string) bool {
	return strings.Contains(tag, "grpc.") || tag == "rpc.response.status_code"
}

func isStatusOfHTTP(tag string) bool { return strings.HasPrefix(tag, "http.") && isNumber(tag) }

// statusIn returns the HTTP status that the agent reads from a tag: a number takes precedence.
func statusIn(s *pb.Span, tag string) uint32 {
	if number, ok := s.Metrics[tag]; ok {
		return uint32(number)
	}
	status, err := strconv.ParseUint(s.Meta[tag], 10, 32)
	if err != nil {
		return 0
	}
	return uint32(status)
}

// shown returns the compared content of a span.
func shown(s *pb.Span, wanted map[string]bool) string {
	service, _ := normalize.NormalizeService(s.Service, "")
	name, _ := normalize.NormalizeName(s.Name)
	var tags []string
	for _, k := range []string{"http.status_code", "http.response.status_code"} {
		if status := statusIn(s, k); wanted[k] && status != 0 {
			tags = append(tags, fmt.Sprint(k, "=", status))
		}
	}
	for k, v := range s.Meta {
		if wanted[k] && v != "" && !isNumberAlone(k) && !isStatusOfHTTP(k) {
			tags = append(tags, k+"="+repaired(v))
		}
	}
	for k, v := range s.Metrics {
		if wanted[k] && isNumber(k) && !isStatusOfHTTP(k) && (!isStatusOfGRPC(k) || s.Meta[k] == "") {
			tags = append(tags, fmt.Sprint(k, "=", v))
		}
	}
	slices.Sort(tags)
	return fmt.Sprintf("%d/%d/%d %s|%s|%s|%s %d+%d !%d %q", s.TraceID, s.SpanID, s.ParentID,
		repaired(service), repaired(name), repaired(s.Resource), repaired(s.Type), s.Start, s.Duration, s.Error, tags)
}

// translated compares a translator with the agent's code.
type translated struct {
	policy     *dd.Policy
	translator *translate.Translator
	request    otlp.Request
	table      spantable.Table
	counter    *dd.Counter
	conf       *config.AgentConfig
	wanted     map[string]bool
}

func newTranslated(t testing.TB, o *oracle) *translated {
	t.Helper()
	c := &translated{
		policy: agentPolicy(t, o.conf), counter: dd.NewCounter(), conf: config.New(),
		wanted: map[string]bool{},
	}
	var err error
	if c.translator, err = translate.New(c.policy.Names()); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.policy.Tags() {
		c.wanted[name] = true
	}
	// The span table has these as fields of the span or its sender. They are compared with the groups.
	for _, name := range []string{"span.kind", "env", "version", "_dd.origin", "_dd.git.commit.sha"} {
		delete(c.wanted, name)
	}
	return c
}

// translate converts a request to traces.
func (c *translated) translate(t testing.TB, all ptrace.Traces) {
	t.Helper()
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(all)
	if err != nil {
		t.Fatal(err)
	}
	ofSpans, ofResources := c.translator.Names()
	if err := c.request.Decode(body, ofSpans, ofResources); err != nil {
		t.Fatal(err)
	}
	if err := c.translator.Translate(&c.request, false, &c.table); err != nil {
		t.Fatal(err)
	}
}

// byService returns the batches of a counter for all senders.
func byService(c *dd.Counter) iter.Seq2[string, *span.Batch] {
	return func(yield func(string, *span.Batch) bool) {
		for origin, batch := range c.IngestedBatches {
			if !yield(origin.Service, batch) {
				return
			}
		}
	}
}

// expected returns the spans of a request as converted by the agent's ingest, by resource.
func (c *translated) expected(all ptrace.Traces) (want []map[string]int) {
	for _, resource := range all.ResourceSpans().All() {
		_, filtered := attributes.ConsumeContainerTagsFromResource(resource.Resource())
		counts := map[string]int{}
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				counts[shown(transform.OtelSpanToDDSpan(s, filtered, scope.Scope(), c.conf), c.wanted)]++
			}
		}
		if len(counts) > 0 {
			want = append(want, counts)
		}
	}
	return want
}

// ours returns the spans of a translated request, by sender.
func (c *translated) ours() []map[string]int {
	got := make([]map[string]int, len(c.table.Senders))
	for i := range c.table.Groups {
		g := &c.table.Groups[i]
		if got[g.Sender] == nil {
			got[g.Sender] = map[string]int{}
		}
		for _, s := range c.table.SpansOf(g) {
			got[g.Sender][shown(c.spanOf(g, &s), c.wanted)]++
		}
	}
	return got
}

// spanOf converts a span of the span table to the agent's type.
func (c *translated) spanOf(g *spantable.Group, s *spantable.Span) *pb.Span {
	t := &c.table
	made := &pb.Span{
		Service:  t.String(s.Service),
		Name:     t.String(s.Name),
		Resource: t.String(s.Resource),
		Type:     t.String(s.Type),
		TraceID:  g.TraceLow,
		SpanID:   s.ID,
		ParentID: s.Parent,
		Start:    int64(s.Start),
		Duration: int64(s.Duration),
		Meta:     map[string]string{}, Metrics: map[string]float64{},
	}
	if s.Status == spantable.StatusError {
		made.Error = 1
	}
	for _, tag := range t.TagsOf(s) {
		if name := c.policy.Names().Name(tag.Label); tag.Type == spantable.TypeText {
			made.Meta[name] = t.String(tag.Text())
		} else {
			made.Metrics[name], _ = tag.Float()
		}
	}
	return made
}

// compare compares the two conversions of a request.
func (c *translated) compare(t testing.TB, all ptrace.Traces) (spans int) {
	t.Helper()
	got, want := c.ours(), c.expected(all)
	if len(got) != len(want) {
		t.Fatalf("%d senders, want %d", len(got), len(want))
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

// TestOTLP_TranslatedLikeAgent compares the spans of each sender.
func TestOTLP_TranslatedLikeAgent(t *testing.T) {
	c, spans := newTranslated(t, makeOracle()), 0
	for seed := range uint64(400) {
		all := otlpspans.Random(rand.New(rand.NewPCG(seed, 1)),
			otlpspans.Config{IsLong: true, HasDatabases: true})
		c.translate(t, all)
		if spans += c.compare(t, all); t.Failed() {
			t.Fatalf("case %d", seed)
		}
		if err := c.counter.CountIngested(&c.table, c.policy); err != nil {
			t.Fatal(err)
		}
	}
	if spans < 2000 {
		t.Errorf("only %d spans were compared", spans)
	}
}

// ingest returns what the agent would count for a request that it receives directly.
func (o *oracle) ingest(t testing.TB, all ptrace.Traces, since time.Time) map[string]total {
	out := make(chan *api.Payload, 1)
	translator, err := attributes.NewTranslator(component.TelemetrySettings{MeterProvider: noop.NewMeterProvider()})
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

// TestOTLP_CountedLikeAgent checks that, from the bytes of random requests to groups,
// the daemon's translator and counter have the same result as the agent's ingest, processing and
// concentrator.
func TestOTLP_CountedLikeAgent(t *testing.T) {
	o := makeOracle()
	c, since, groups, uncounted := newTranslated(t, o), time.Unix(1_789_999_000, 0), 0, 0
	for seed := range uint64(500) {
		all := otlpspans.Random(rand.New(rand.NewPCG(seed, 2)), otlpspans.Config{})
		withinOneBucket(func() {
			c.translate(t, all)
			if c.counter.CountIngested(&c.table, c.policy) != nil {
				uncounted++
				return
			}
			actual := ours(t, byService(c.counter), "", since)
			expected := o.ingest(t, all, since)
			groups += len(actual)
			for key := range actual {
				if actual[key] != expected[key] {
					for key := range expected {
						if _, ok := actual[key]; !ok {
							t.Errorf("case %d: only the agent has %s %v", seed, key, expected[key])
						}
					}
					t.Fatalf("case %d: %s\n ours %v\nagent %v", seed, key, actual[key], expected[key])
				}
			}
			for key := range expected {
				if _, ok := actual[key]; !ok {
					t.Fatalf("case %d: only the agent has %s %v", seed, key, expected[key])
				}
			}
		})
	}
	t.Logf("%d groups, %d requests left to the agent", groups, uncounted)
	if groups < 2000 || uncounted > 100 {
		t.Errorf("only %d groups were compared, and %d requests uncounted: the comparison has little coverage", groups, uncounted)
	}
}
