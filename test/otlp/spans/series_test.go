package spans

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// dimensions are the dimensions in the connector's configuration, for spans with the current
// conventions.
var dimensions = []string{
	"http.request.method", "http.route", "http.response.status_code", "rpc.system.name", "rpc.method",
	"db.system.name", "db.namespace",
	"db.collection.name", "messaging.system", "messaging.destination.name", "peer.service", "server.address",
}

// named is a policy with these dimensions for every span kind and names as sent, as in the connector.
var named = otel.NewPolicy(otel.Labels{Attributes: dimensions, KeepNames: true})

// exporter returns the daemon's exporter with the same dimensions.
func exporter(t *testing.T) *otlp.Exporter {
	t.Helper()
	endpoint, err := otlp.ParseEndpoint("http://localhost:4318")
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := points.ParseDimensions(strings.Join(dimensions, ","))
	if err != nil {
		t.Fatal(err)
	}
	e, err := otlp.New(otlp.Config{
		Variables: otlp.Variables{Endpoint: endpoint}, Dialect: points.Spanmetrics,
		Dimensions: wanted, Version: "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// presentSpan returns a span as written by a current instrumentation: few names, current attributes of
// the right types, and a status.
func presentSpan(rnd *rand.Rand, start uint64) *trace.Span {
	s := &trace.Span{
		Name:              oneOf(rnd, "GET /carts/{id}", "SELECT carts", "orders process", "Cart::add item"),
		Kind:              trace.Span_SpanKind(rnd.IntN(6)),
		StartTimeUnixNano: start,
		EndTimeUnixNano:   start + rnd.Uint64N(1<<rnd.IntN(34)),
		TraceState:        oneOf(rnd, "", "", "ot=th:8", "ot=th:c", "vendor=x"),
		Status:            &trace.Status{Code: trace.Status_StatusCode(rnd.IntN(3))},
	}
	maybe := func(name string, values ...string) {
		if rnd.IntN(3) == 0 {
			s.Attributes = append(s.Attributes, text(name, oneOf(rnd, values...)))
		}
	}
	maybe("http.request.method", "GET", "POST")
	maybe("http.route", "/carts/{id}")
	maybe("db.system.name", "postgresql", "redis")
	maybe("db.namespace", "shop")
	maybe("db.collection.name", "carts")
	maybe("messaging.system", "kafka")
	maybe("messaging.destination.name", "orders")
	maybe("rpc.system.name", "grpc")
	maybe("rpc.method", "shop.Carts/Get")
	maybe("peer.service", "prices")
	maybe("server.address", "db.example.com")
	maybe("url.full", fmt.Sprint("http://x/", rnd.Uint64()))
	if rnd.IntN(3) == 0 {
		s.Attributes = append(s.Attributes, &common.KeyValue{
			Key:   "http.response.status_code",
			Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: oneOf[int64](rnd, 200, 404)}},
		})
	}
	return s
}

// total is the content of a series.
type total struct {
	calls, spans, seconds float64
}

// connected adds the connector's series for a request to into: a series for each combination of
// attributes, in the connector's order, within the resource. Each span counts with its adjusted count.
// The connector's histogram counts the duration as often as well; the daemon's counts it once.
func connected(request *trace.TracesData, into map[string]*total) {
	for _, r := range request.ResourceSpans {
		service := written(r.Resource.Attributes, "service.name")
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				name := []string{
					"resource " + service + " " + written(r.Resource.Attributes, "service.instance.id"),
					"service.name=" + service, "span.name=" + s.Name, "span.kind=" + s.Kind.String(),
					"status.code=" + s.Status.Code.String(),
				}
				for _, d := range dimensions {
					if v := written(s.Attributes, d); v != "" {
						name = append(name, d+"="+v)
					}
				}
				slices.Sort(name[1:])
				series := strings.Join(name, "|")
				if into[series] == nil {
					into[series] = &total{}
				}
				into[series].calls += weightOf(s.TraceState)
				into[series].spans++
				into[series].seconds += weightOf(s.TraceState) * float64(s.EndTimeUnixNano-s.StartTimeUnixNano) / 1e9
			}
		}
	}
}

// sealing counts batches like drainers do: by origin and key.
type sealing struct {
	table   *aggregate.Table
	window  aggregate.Window
	origins []span.Origin
	keys    []registry.KeyEntry
	known   map[string]registry.KeyID
}

const width = 10 * time.Second

var opened = time.Unix(1_790_000_000, 0)

func newSealing() *sealing {
	s := &sealing{known: map[string]registry.KeyID{}, window: aggregate.NewWindow(0, opened, width)}
	s.table = aggregate.NewTable(1<<14, width, sketch.NewMemory(64<<20, sketch.CommonGrid()))
	s.table.Begin(opened)
	return s
}

func (s *sealing) count(t *testing.T, c *otel.Counter) {
	t.Helper()
	for origin, batch := range c.Batches {
		place := slices.Index(s.origins, origin)
		if place < 0 {
			place = len(s.origins)
			s.origins = append(s.origins, origin)
		}
		for i := range batch.Snapshots {
			snapshot := &batch.Snapshots[i]
			key := wire.AppendKey(nil, batch.Labeler.Label(snapshot.Span))
			name := fmt.Sprint(place, string(key))
			id, is := s.known[name]
			if !is {
				id = registry.KeyID(len(s.keys))
				entry := registry.KeyEntry{Origin: registry.OriginID(place)}
				if err := wire.ReadKey(&entry.Key, key); err != nil {
					t.Fatal(err)
				}
				entry.Key.Normalize(origin.Lang)
				s.keys, s.known[name] = append(s.keys, entry), id
			}
			s.table.Add(&aggregate.Slot{
				Key:      id,
				Duration: snapshot.Duration,
				End:      snapshot.End,
				Weight:   snapshot.Weight,
				Flags:    snapshot.Flags,
				Place:    s.window.Place(snapshot.End),
			})
		}
	}
}

// exported returns the exported series of the counted spans.
func (s *sealing) exported(t *testing.T) map[string]*total {
	t.Helper()
	var merger export.Merger
	sealed := aggregate.NewSealed(1, opened, opened.Add(width), width, s.origins, s.keys, s.table)
	all := map[string]*total{}
	cycle := &export.Cycle{Sealed: sealed, Rows: merger.Merge(sealed), Limit: 64 << 20}
	exporter(t).Encode(cycle, func(p *export.Payload) {
		var data metrics.MetricsData
		if err := proto.Unmarshal(p.Body, &data); err != nil {
			t.Fatal(err)
		}
		for _, r := range data.ResourceMetrics {
			resource := r.Resource.Attributes
			if written(resource, "telemetry.sdk.name") != "opentelemetry" ||
				written(resource, "telemetry.sdk.version") != "1.52.0" ||
				written(resource, "telemetry.sdk.language") != "java" {
				t.Errorf("the resource is %v", resource)
			}
			of := func(attributes []*common.KeyValue) *total {
				name := []string{"resource " + written(resource, "service.name") + " " +
					written(resource, "service.instance.id")}
				for _, a := range attributes {
					name = append(name, a.Key+"="+written(attributes, a.Key))
				}
				slices.Sort(name[1:])
				series := strings.Join(name, "|")
				if all[series] == nil {
					all[series] = &total{}
				}
				return all[series]
			}
			for _, m := range r.ScopeMetrics[0].Metrics {
				for _, p := range m.GetSum().GetDataPoints() {
					of(p.Attributes).calls += float64(p.GetAsInt())
				}
				for _, p := range m.GetExponentialHistogram().GetDataPoints() {
					one := of(p.Attributes)
					one.spans += float64(p.Count)
					one.seconds += p.GetSum()
				}
			}
		}
	})
	return all
}

// TestSeries_SameAsConnector checks that the spans of random requests, from the received bytes to
// the exported bytes, result in the same series as in the connector.
func TestSeries_SameAsConnector(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	want, sealing, c := map[string]*total{}, newSealing(), otel.NewCounter()
	for range 40 {
		request := &trace.TracesData{}
		for range 1 + rnd.IntN(2) {
			r := &trace.ResourceSpans{ScopeSpans: []*trace.ScopeSpans{{}, {}}}
			r.Resource = resourceOf(oneOf(rnd, "Shop Ä", "carts"), oneOf(rnd, "1", "2"))
			for _, scope := range r.ScopeSpans {
				for range rnd.IntN(60) {
					scope.Spans = append(scope.Spans,
						presentSpan(rnd, uint64(opened.UnixNano())+rnd.Uint64N(1e9)))
				}
			}
			request.ResourceSpans = append(request.ResourceSpans, r)
		}
		connected(request, want)
		if err := c.Count(encode(t, request), named); err != nil {
			t.Fatal(err)
		}
		sealing.count(t, c)
		c.Release()
	}
	got := sealing.exported(t)
	if len(want) < 1000 || len(got) != len(want) {
		t.Errorf("%d series, want %d", len(got), len(want))
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		w := want[name]
		g := cmp.Or(got[name], &total{})
		if seconds := w.seconds * w.spans / w.calls; g.calls != w.calls || g.spans != w.spans ||
			math.Abs(g.seconds-seconds) > 1e-9*seconds {
			t.Fatalf("%s: %+v, want %+v", name, g, w)
		}
	}
}
