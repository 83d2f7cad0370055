package otlp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// read decodes a request with the OpenTelemetry library, as a MetricsData, which has the same encoding.
// The library must know every field and must encode the request identically.
func read(t testing.TB, body []byte) *metrics.MetricsData {
	t.Helper()
	var data metrics.MetricsData
	if err := proto.Unmarshal(body, &data); err != nil {
		t.Fatal(err)
	}
	if unknown := unknownIn(data.ProtoReflect()); unknown > 0 {
		t.Fatalf("%d bytes of fields that OTLP does not have", unknown)
	}
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(&data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, body) {
		t.Fatalf("the library writes %d bytes otherwise than they came, as %d", len(body), len(again))
	}
	return &data
}

// unknownIn returns the number of bytes in unknown fields of a message and its submessages.
func unknownIn(m protoreflect.Message) (unknown int) {
	unknown = len(m.GetUnknown())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() != protoreflect.MessageKind {
			return true
		}
		if !f.IsList() {
			unknown += unknownIn(v.Message())
			return true
		}
		for i := range v.List().Len() {
			unknown += unknownIn(v.List().Get(i).Message())
		}
		return true
	})
	return unknown
}

// TestLibrary_ReadsGoldenRequests checks that decoding and encoding is the identity.
func TestLibrary_ReadsGoldenRequests(t *testing.T) {
	for name, metricNames := range map[string][]string{
		"spanmetrics": {"traces.span.metrics.calls", "traces.span.metrics.duration"},
		"datadog":     {"traces.span.sdk.metrics.duration"},
		"explicit":    {"traces.span.metrics.calls", "traces.span.metrics.duration"},
	} {
		body, err := os.ReadFile("../../internal/export/otlp/testdata/" + name + ".binpb")
		if err != nil {
			t.Fatal(err)
		}
		data := read(t, body)
		if len(data.ResourceMetrics) != 2 {
			t.Fatalf("%s: %d resources", name, len(data.ResourceMetrics))
		}
		for _, r := range data.ResourceMetrics {
			var names []string
			for _, m := range r.ScopeMetrics[0].Metrics {
				names = append(names, m.Name)
			}
			if !slices.Equal(names, metricNames) || r.ScopeMetrics[0].Scope.Name != "spanstatsd" {
				t.Errorf("%s: metrics %v of %v", name, names, r.ScopeMetrics[0].Scope)
			}
		}
	}
}

// oneSpan is a span to count.
type oneSpan struct {
	origin, operation int
	failed            bool
	ns                uint64
	weight            float64
	after             time.Duration // time since the start of the cycle
	drainer           int
	isSampled         bool // its trace is forwarded
}

// sealedOf returns a sealed cycle of spans and the exemplars of the sampled ones.
func sealedOf(spans []oneSpan, opened time.Time) (*aggregate.Sealed, *exemplars.Table) {
	const width, keys = 10 * time.Second, 1 << 10
	memory := sketch.NewMemory(64<<20, sketch.CommonGrid())
	var tables []*aggregate.Table
	for range 2 {
		table := aggregate.NewTable(keys, width, memory)
		table.Begin(opened)
		tables = append(tables, table)
	}
	var origins []span.Origin
	var entries []registry.KeyEntry
	for i := range 4 {
		origins = append(origins, span.Origin{Service: fmt.Sprint("service", i), Host: "h"})
	}
	known := map[[2]int]registry.KeyID{}
	window, table := aggregate.NewWindow(0, opened, width), exemplars.New(1000)
	for i, s := range spans {
		at := [2]int{s.origin, s.operation}
		id, is := known[at]
		if !is {
			id = registry.KeyID(len(entries))
			known[at] = id
			entries = append(entries, registry.KeyEntry{
				Origin: registry.OriginID(s.origin),
				Key: span.Key{
					Service: "s", Operation: operation(s.operation), Resource: "r",
					Kind: "server", HTTPStatus: 200,
				},
			})
		}
		end := opened.Add(s.after).UnixNano()
		slot := aggregate.Slot{Key: id, Duration: s.ns, End: end, Weight: s.weight, Place: window.Place(end)}
		if s.failed {
			slot.Flags = span.Error
		}
		tables[s.drainer].Add(&slot)
		if s.isSampled {
			one := exemplars.Span{Cycle: 1, Key: uint32(id), IsError: s.failed, Exemplar: exemplars.Exemplar{
				TraceHigh: 1 << 60, TraceLow: uint64(i + 1), Span: s.ns + 1, Duration: s.ns, End: end,
			}}
			table.Offer(slices.Values([]exemplars.Span{one}))
		}
	}
	return aggregate.NewSealed(1, opened, opened.Add(width), width, origins, entries, tables...), table
}

func operation(i int) string { return fmt.Sprint("operation", i) }

// seriesName identifies a series in these tests.
type seriesName struct {
	service, operation string
	failed             bool
}

// expected is the expected content of a series, computed without the daemon's code.
type expected struct {
	calls, sum float64
	durations  []uint64
	slowest    uint64 // longest duration of a sampled span, plus one; 0 if there is none
}

func expectedOf(spans []oneSpan) map[seriesName]*expected {
	all := map[seriesName]*expected{}
	for _, s := range spans {
		name := seriesName{fmt.Sprint("service", s.origin), operation(s.operation), s.failed}
		if all[name] == nil {
			all[name] = &expected{}
		}
		e := all[name]
		e.calls += s.weight
		e.sum += float64(s.ns) * s.weight / 1e9
		e.durations = append(e.durations, s.ns)
		if s.isSampled {
			e.slowest = max(e.slowest, s.ns+1)
		}
	}
	return all
}

// randomSpans returns the spans of an interval: short and long ones, zeros, few and many.
func randomSpans(rnd *rand.Rand, n int) (spans []oneSpan) {
	weight := float64(1 + rnd.IntN(3))
	for range n {
		s := oneSpan{
			origin: rnd.IntN(4), operation: rnd.IntN(1 + rnd.IntN(30)), failed: rnd.IntN(4) == 0,
			weight: weight, ns: rnd.Uint64N(1 << rnd.IntN(45)),
			after: time.Duration(rnd.IntN(25)-12) * time.Second, drainer: rnd.IntN(2),
			isSampled: rnd.IntN(5) == 0,
		}
		spans = append(spans, s)
	}
	return spans
}

// TestLibrary_ReadsRandomRequests checks random intervals, in requests of random size: each series
// occurs once, with the right calls, durations, buckets and time window.
func TestLibrary_ReadsRandomRequests(t *testing.T) {
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		spans := randomSpans(rnd, 1+rnd.IntN(2000))
		dialect := []points.Dialect{points.Spanmetrics, points.Datadog}[seed%2]
		opened := time.Unix(1_700_000_000, 0).Add(time.Duration(rnd.IntN(9)) * time.Second)
		checkRound(t, spans, dialect, opened, 2000+rnd.IntN(100_000))
	}
}

// FuzzTheLibraryReadsWhatWasCounted checks the same for intervals from the fuzzer.
func FuzzTheLibraryReadsWhatWasCounted(f *testing.F) {
	f.Add(uint64(1), 10, 3000)
	f.Fuzz(func(t *testing.T, seed uint64, n, limit int) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		checkRound(t, randomSpans(rnd, 1+min(max(n, 0), 300)), points.Spanmetrics,
			time.Unix(1_700_000_000, 0),
			min(max(limit, 2000), 1<<20))
	})
}

func checkRound(t *testing.T, spans []oneSpan, dialect points.Dialect, opened time.Time, limit int) {
	t.Helper()
	endpoint, err := otlp.ParseEndpoint("http://localhost:4318")
	if err != nil {
		t.Fatal(err)
	}
	dimensions, err := points.ParseDimensions("all")
	if err != nil {
		t.Fatal(err)
	}
	sealed, table := sealedOf(spans, opened)
	exporter, err := otlp.New(otlp.Config{
		Variables: otlp.Variables{Endpoint: endpoint}, Dialect: dialect, Dimensions: dimensions,
		Version: "1", Exemplars: table,
	})
	if err != nil {
		t.Fatal(err)
	}
	var merger export.Merger
	want, counted := expectedOf(spans), uint64(0)
	seen := map[seriesName]bool{}
	calls := map[seriesName]float64{}
	cycle := &export.Cycle{Sealed: sealed, Rows: merger.Merge(sealed), Limit: limit}
	lost := exporter.Encode(cycle, func(p *export.Payload) {
		if len(p.Body) > limit {
			t.Errorf("a request of %d bytes, at most %d", len(p.Body), limit)
		}
		counted += p.Spans
		for _, resource := range read(t, p.Body).ResourceMetrics {
			for _, m := range resource.ScopeMetrics[0].Metrics {
				for _, p := range m.GetSum().GetDataPoints() {
					calls[nameOf(resource, p.Attributes)] += float64(p.GetAsInt())
				}
				for _, p := range m.GetExponentialHistogram().GetDataPoints() {
					name := nameOf(resource, p.Attributes)
					if seen[name] || want[name] == nil {
						t.Fatalf("%+v comes twice, or was not counted", name)
					}
					seen[name] = true
					checkPoint(t, p, want[name], opened)
					checkExemplars(t, p, want[name].slowest)
				}
			}
		}
	}).Unencodable
	if lost != 0 || counted != uint64(len(spans)) || len(seen) != len(want) {
		t.Fatalf("%d of %d series, %d of %d spans, %d in no request", len(seen), len(want), counted,
			len(spans), lost)
	}
	if dialect == points.Spanmetrics {
		for name, e := range want {
			if calls[name] != e.calls {
				t.Errorf("%+v has %v calls, want %v", name, calls[name], e.calls)
			}
		}
	}
}

func checkPoint(t *testing.T, p *metrics.ExponentialHistogramDataPoint, want *expected, opened time.Time) {
	t.Helper()
	if p.StartTimeUnixNano != uint64(opened.UnixNano()) ||
		p.TimeUnixNano != uint64(opened.Add(10*time.Second).UnixNano()) {
		t.Errorf("a window from %d to %d", p.StartTimeUnixNano, p.TimeUnixNano)
	}
	spans := float64(len(want.durations))
	if sum := want.sum * spans / want.calls; math.Abs(p.GetSum()-sum) > sum*1e-9 {
		t.Errorf("a sum of %v s, want %v", p.GetSum(), sum)
	}
	sdk := ofTheSDK(t, want.durations, sketch.DefaultMaxBuckets)
	if p.Count != sdk.Count || p.ZeroCount != sdk.ZeroCount || p.Scale != sdk.Scale || p.Negative != nil {
		t.Fatalf("%d spans, %d zeros at scale %d; the SDK has %d, %d at %d", p.Count, p.ZeroCount, p.Scale,
			sdk.Count, sdk.ZeroCount, sdk.Scale)
	}
	if got := p.GetPositive().GetBucketCounts(); !slices.Equal(got, sdk.PositiveBucket.Counts) ||
		len(got) > 0 && p.Positive.Offset != sdk.PositiveBucket.Offset {
		t.Fatalf("buckets from %d on %v\nthe SDK has them from %d on %v", p.GetPositive().GetOffset(), got,
			sdk.PositiveBucket.Offset, sdk.PositiveBucket.Counts)
	}
}

// checkExemplars checks that a point's exemplar is the slowest sampled span and that its value belongs
// to a non-empty bucket according to the SDK.
func checkExemplars(t *testing.T, p *metrics.ExponentialHistogramDataPoint, slowest uint64) {
	t.Helper()
	if slowest == 0 {
		if len(p.Exemplars) != 0 {
			t.Errorf("an exemplar %v, where no trace went on", p.Exemplars)
		}
		return
	}
	if len(p.Exemplars) != 1 {
		t.Fatalf("%d exemplars", len(p.Exemplars))
	}
	x := p.Exemplars[0]
	span := binary.BigEndian.Uint64(x.SpanId)
	if span != slowest || len(x.TraceId) != 16 || x.TraceId[0] != 1<<4 ||
		x.GetAsDouble() != truncate(slowest-1) || len(x.FilteredAttributes) != 0 {
		t.Errorf("an exemplar %v, want that of %d ns", x, slowest-1)
	}
	if x.TimeUnixNano < p.StartTimeUnixNano || x.TimeUnixNano > p.TimeUnixNano {
		t.Errorf("an exemplar at %d of a window from %d to %d", x.TimeUnixNano, p.StartTimeUnixNano,
			p.TimeUnixNano)
	}
	sdk := ofTheSDK(t, []uint64{slowest - 1}, sketch.DefaultMaxBuckets)
	if sdk.ZeroCount > 0 {
		if p.ZeroCount == 0 {
			t.Error("an exemplar that took no time, where no span did")
		}
		return
	}
	bucket := int(sdk.PositiveBucket.Offset>>(sdk.Scale-p.Scale) - p.Positive.Offset)
	if bucket < 0 || bucket >= len(p.Positive.BucketCounts) || p.Positive.BucketCounts[bucket] == 0 {
		t.Errorf("the SDK counts %v s in bucket %d of %v", x.GetAsDouble(), bucket, p.Positive.BucketCounts)
	}
}

func nameOf(r *metrics.ResourceMetrics, attributes []*common.KeyValue) (name seriesName) {
	for _, a := range r.Resource.Attributes {
		if a.Key == "service.name" {
			name.service = a.Value.GetStringValue()
		}
	}
	for _, a := range attributes {
		switch a.Key {
		case "span.name":
			if name.operation == "" {
				name.operation = a.Value.GetStringValue()
			}
		case "datadog.operation.name":
			name.operation = a.Value.GetStringValue()
		case "status.code":
			name.failed = a.Value.GetStringValue() == "STATUS_CODE_ERROR"
		}
	}
	return name
}
