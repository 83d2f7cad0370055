package otlp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

const (
	callsName     = "traces.span.metrics.calls"
	durationsName = "traces.span.metrics.duration"
	datadogName   = "traces.span.sdk.metrics.duration"
)

// A series has one point per window, whatever buckets, tables and keys its spans are in.
func TestSeries_OnePointPerWindow(t *testing.T) {
	c := newCycle()
	origin := c.Origin(span.Origin{Service: "web", EntityID: "a"})
	twin := c.Origin(span.Origin{Service: "web", EntityID: "b"}) // no attribute contains the entity ID
	key := span.Key{
		Service: "web", Operation: "op", Resource: "one",
		PeerTags: []string{"peer.service:y", "zone:x"},
	}
	like := key
	like.Resource, like.TraceRoot, like.PeerTags = "two", span.TraceRootTrue, []string{"cloud.availability_zone:x", "peer.service:y"}
	for i, id := range []registry.KeyID{c.Key(origin, key), c.Key(origin, like), c.Key(twin, key)} {
		for drainer := range 2 {
			for _, after := range []time.Duration{-time.Second, time.Second} {
				c.Add(drainer, id, after, uint64(time.Duration(i+1)*time.Millisecond), 0, 1)
			}
		}
	}
	r := mustRead(t, encodeAll(t, withAll(), c))
	if len(r) != 1 || len(r[0].Metrics[callsName].Points) != 1 ||
		len(r[0].Metrics[durationsName].Points) != 1 {
		t.Fatalf("%d resources, of the first %d points", len(r), len(r[0].Metrics[durationsName].Points))
	}
	calls, p := r[0].Metrics[callsName].Points[0], r[0].Metrics[durationsName].Points[0]
	if *calls.Calls != 12 || *p.Count != 12 || math.Abs(p.Sum-4*0.006) > 1e-12 {
		t.Errorf("%d calls, %d durations of %v s, want 12 of 0.024 s", *calls.Calls, *p.Count, p.Sum)
	}
	if r := mustRead(t, encodeAll(t, asDatadog, c)); len(r[0].Metrics[datadogName].Points) != 2 {
		t.Errorf("as Datadog has it %d points, want one for each resource",
			len(r[0].Metrics[datadogName].Points))
	}
}

func TestResources_SeparateIfDifferent(t *testing.T) {
	c := newCycle()
	named, nameless := c.Origin(span.Origin{Service: "web", Host: "h"}), c.Origin(span.Origin{Host: "h"})
	other := c.Origin(span.Origin{Service: "web", Host: "i"})
	for _, origin := range []registry.OriginID{named, nameless, other} {
		for i, service := range []string{"web", "db", "web"} {
			key := c.Key(origin,
				span.Key{Service: service, Operation: fmt.Sprint("op", origin, i), Resource: "r"})
			c.Add(0, key, 0, uint64(time.Millisecond), 0, 1)
		}
	}
	got := map[string]float64{}
	for _, r := range mustRead(t, encodeAll(t, withAll(), c)) {
		name := fmt.Sprint(r.Attributes["service.name"], " ", r.Attributes["host.name"])
		if got[name] != 0 {
			t.Errorf("resource %q stands there twice", name)
		}
		for _, p := range r.Metrics[callsName].Points {
			got[name] += float64(*p.Calls)
			if p.Attributes["service.name"] != r.Attributes["service.name"] {
				t.Errorf("a series of %v is of %v", r.Attributes["service.name"],
					p.Attributes["service.name"])
			}
		}
	}
	if want := map[string]float64{"web h": 5, "db h": 1, "web i": 3}; !reflect.DeepEqual(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

// The sum of a point is that of its spans in seconds. If spans have weights, it is scaled, because
// the histogram contains each span once.
func TestSum_ScaledByWeight(t *testing.T) {
	c := newCycle()
	origin := c.Origin(span.Origin{Service: "web"})
	light := c.Key(origin, span.Key{Service: "web", Operation: "light", Resource: "r"})
	heavy := c.Key(origin, span.Key{Service: "web", Operation: "heavy", Resource: "r"})
	for _, k := range []struct {
		key    registry.KeyID
		weight float64
	}{{light, 1}, {heavy, 4}} {
		c.Add(0, k.key, 0, uint64(250*time.Millisecond), 0, k.weight)
		c.Add(0, k.key, 0, uint64(750*time.Millisecond), 0, k.weight)
		c.Add(0, k.key, 0, uint64(2*time.Second), span.Error, k.weight)
	}
	r := mustRead(t, encodeAll(t, withAll(), c))[0]
	durations := r.points(t, durationsName, "span.name", "status.code")
	calls := r.points(t, callsName, "span.name", "status.code")
	for name, want := range map[string]struct {
		calls, count uint64
		sum          float64
	}{
		"light STATUS_CODE_UNSET ": {2, 2, 1}, "light STATUS_CODE_ERROR ": {1, 1, 2},
		"heavy STATUS_CODE_UNSET ": {8, 2, 1}, "heavy STATUS_CODE_ERROR ": {4, 1, 2},
	} {
		if p := durations[name]; *calls[name].Calls != want.calls || *p.Count != want.count ||
			math.Abs(p.Sum-want.sum) > 1e-9 {
			t.Errorf("%s: %d calls, %d durations of %v s, want %+v", name, *calls[name].Calls, *p.Count,
				p.Sum, want)
		}
	}
}

// Groups counted by tracers are part of the same point, whatever their mapping.
func TestSeries_IncludesGroupsOfClients(t *testing.T) {
	now := time.Now()
	group := func(m sketch.Mapping, bin uint16, spans uint64) aggregate.Group {
		return aggregate.Group{
			Key:     span.Key{Service: "web", Operation: "op", Resource: "r"},
			Bucket:  now.Truncate(testcycle.Width).UnixNano(),
			Mapping: m,
			Counts:  aggregate.Counts{Spans: spans, Hits: float64(spans), Duration: float64(spans) * 1e6},
			OK:      sketch.Bins{List: []sketch.Bin{{Index: bin, Spans: spans}}},
		}
	}
	other := sketch.AgentMapping
	other.Gamma = 1.05
	sealed := testcycle.Merged(t, now, group(sketch.AgentMapping, 700, 3), group(other, 280, 4))
	requests, _ := encodeWith(testEncoder(withAll(), "", nil), sealed, export.DefaultMaxPayloadBytes)
	r := mustRead(t, requests[0].body)
	points := r[0].Metrics[durationsName].Points
	if len(r) != 1 || len(points) != 1 || *points[0].Count != 7 || math.Abs(points[0].Sum-0.007) > 1e-12 {
		t.Errorf("%s", r.shown(t))
	}
}

func TestTopLevel_IfAllSpansAre(t *testing.T) {
	c := newCycle()
	origin := c.Origin(span.Origin{Service: "web"})
	for operation, flags := range map[string][]span.Flags{
		"all":  {span.TopLevel, span.TopLevel},
		"some": {span.TopLevel, 0}, "none": {0, 0},
	} {
		key := c.Key(origin, span.Key{Service: "web", Operation: operation, Resource: "r"})
		for _, f := range flags {
			c.Add(0, key, 0, uint64(time.Millisecond), f, 1)
		}
	}
	for operation, p := range mustRead(t, encodeAll(t, asDatadog, c))[0].points(t, datadogName,
		"datadog.operation.name") {
		if got := p.Attributes["datadog.span.top_level"]; got != (operation == "all ") {
			t.Errorf("top-level %v for %s", got, operation)
		}
	}
}

// many returns a cycle with the given number of series, of some origins.
func many(n int) *testcycle.Cycle {
	c := newCycle()
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range 3 {
		c.Origin(span.Origin{Service: fmt.Sprint("service", i)})
	}
	for i := range n {
		key := c.Key(registry.OriginID(i%3),
			span.Key{Service: "s", Operation: fmt.Sprint("op", i), Resource: "r"})
		for range 1 + rnd.IntN(4) {
			c.Add(i%2, key, time.Duration(rnd.IntN(20)-10)*time.Second,
				uint64(time.Duration(rnd.Int64N(1e9))), span.Flags(rnd.IntN(2)), 1)
		}
	}
	return c
}

// No request exceeds the limit, whatever it is. Together they contain the same series as one
// request without a limit, and their numbers of spans add up.
func TestRequests_WithinLimit(t *testing.T) {
	for _, d := range []points.Config{withAll(), asDatadog} {
		metric := points.NewReader(d).Metrics()[0].Durations
		unlimited := flatten(t, mustRead(t, encodeAll(t, d, many(200))), metric)
		for limit := 1500; limit < 20_000; limit += 2111 {
			requests, unencodable := encodeWith(testEncoder(d, "1.2.3", nil), many(200).Seal(), limit)
			if unencodable != 0 {
				t.Fatalf("%d spans are unencodable at %d bytes", unencodable, limit)
			}
			parts := map[string]readPoint{}
			for i, r := range requests {
				if len(r.body) > limit {
					t.Errorf("a request has %d bytes, at most %d", len(r.body), limit)
				}
				// No series has 1400 bytes, so the next one would not have fitted.
				if i < len(requests)-1 && len(r.body) < limit-1400 {
					t.Errorf("a request has %d bytes, but %d fit", len(r.body), limit)
				}
				spans := uint64(0)
				for name, p := range flatten(t, mustRead(t, r.body), metric) {
					if _, twice := parts[name]; twice {
						t.Fatalf("%s is in two requests", name)
					}
					parts[name] = p
					spans += *p.Count
				}
				if spans != r.spans {
					t.Errorf("a request of %d spans reports %d", spans, r.spans)
				}
			}
			if !reflect.DeepEqual(parts, unlimited) {
				t.Fatalf("with a limit of %d bytes there are %d points, without a limit %d, or they differ", limit,
					len(parts), len(unlimited))
			}
		}
	}
}

// A request can be exactly as long as the limit. With a limit of one byte less, there are two
// requests.
func TestRequests_ExactlyAtLimit(t *testing.T) {
	size := len(encodeAll(t, withAll(), many(20)))
	for limit, want := range map[int]int{size: 1, size - 1: 2} {
		if requests, _ := encodeWith(testEncoder(withAll(), "1.2.3", nil), many(20).Seal(),
			limit); len(requests) != want {
			t.Errorf("%d requests of %d bytes within %d, want %d", len(requests), size, limit, want)
		}
	}
}

func flatten(t *testing.T, r readRequest, metric string) map[string]readPoint {
	t.Helper()
	all := map[string]readPoint{}
	for _, resource := range r {
		for name, p := range resource.points(t, metric, "span.name", "datadog.operation.name",
			"status.code") {
			all[fmt.Sprint(resource.Attributes["service.name"], name)] = p
		}
	}
	return all
}

// A series that exceeds the limit is counted as unencodable, and affects no other.
func TestRequests_TooLargeSeriesIsUnencodable(t *testing.T) {
	c := newCycle()
	origin := c.Origin(span.Origin{Service: "web"})
	for _, operation := range []string{"a", "large", "z"} {
		k := span.Key{Service: "web", Operation: operation, Resource: "r"}
		if operation == "large" {
			for i := range 20 {
				k.PeerTags = append(k.PeerTags, fmt.Sprintf("tag%d:%0100d", i, i))
			}
		}
		key := c.Key(origin, k)
		for range 3 {
			c.Add(0, key, 0, uint64(time.Millisecond), 0, 1)
		}
	}
	for _, limit := range []int{600, 2000} {
		requests, unencodable := encodeWith(testEncoder(withAll(), "", nil), c.Seal(), limit)
		spans := uint64(0)
		var operations []string
		for _, r := range requests {
			spans += r.spans
			for _, p := range mustRead(t, r.body)[0].Metrics[callsName].Points {
				operations = append(operations, p.Attributes["span.name"].(string))
			}
		}
		if unencodable != 3 || spans != 6 || !slices.Equal(operations, []string{"a", "z"}) {
			t.Errorf("%d spans unencodable, %d sent, of %v", unencodable, spans, operations)
		}
	}
	if requests, unencodable := encodeWith(testEncoder(withAll(), "", nil), c.Seal(),
		10); len(requests) != 0 || unencodable != 9 {
		t.Errorf("%d requests within 10 bytes, %d spans unencodable", len(requests), unencodable)
	}
}

// An encoder retains nothing of a cycle: the next one is encoded as by a new encoder.
func TestEncoder_RetainsNoCycle(t *testing.T) {
	e := testEncoder(withAll(), "", nil)
	encodeWith(e, many(50).Seal(), 3000)
	e.writer.window = window{}
	again, _ := encodeWith(e, golden().Seal(), export.DefaultMaxPayloadBytes)
	fresh, _ := encodeWith(testEncoder(withAll(), "", nil), golden().Seal(), export.DefaultMaxPayloadBytes)
	if !reflect.DeepEqual(again, fresh) {
		t.Error("the second cycle of an encoder is another than the first of a new one")
	}
}

func TestWindows_NoOverlapNorGap(t *testing.T) {
	at := func(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }
	var got window
	last := uint64(10e9)
	for i, cycle := range [][2]float64{{10, 20}, {20, 25}, {25, 30}, {24, 29}, {29, 40}, {40, 40}, {40, 50}} {
		got = got.next(at(cycle[0]), at(cycle[1]))
		if got.start != last || got.end <= got.start {
			t.Errorf("window %d is from %d to %d, and the last ended at %d", i, got.start, got.end, last)
		}
		last = got.end
	}
	if got := got.next(at(60), at(70)); got != (window{50e9, 70e9}) {
		t.Errorf("after a cycle without spans the window is %v", got)
	}
	if got := (window{}).next(time.Time{}, at(1)); got != (window{0, 1e9}) {
		t.Errorf("before the epoch the window is %v", got)
	}
}

// Encoding allocates per request, not per series. The race detector can add an allocation.
func TestEncoder_MemoryPerRequestOnly(t *testing.T) {
	const series = 500
	for name, d := range map[string]points.Config{"spanmetrics": withAll(), "datadog": asDatadog} {
		sealed := many(series).Seal()
		var m export.Merger
		e := testEncoder(d, "", nil)
		c := &export.Cycle{Sealed: sealed, Rows: m.Merge(sealed), Limit: export.DefaultMaxPayloadBytes}
		allocs := testing.AllocsPerRun(10, func() { e.encode(c, func(*request) {}) })
		if allocs > series {
			t.Errorf("%s: %g allocations for %d series", name, allocs, series)
		}
	}
}
