package otel_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// TestOrigin_FromResource covers the current and the older names of attributes.
func TestOrigin_FromResource(t *testing.T) {
	of := func(attributes []otlptest.Attribute) span.Origin {
		return countedOf(t, otel.NewCounter(),
			otlptest.Request(otlptest.Resource{
				Attributes: attributes,
				Scopes:     [][]otlptest.Span{{{Name: "x"}}},
			}), standard())[0].origin
	}
	want := span.Origin{
		Host:            "shop-5d9c7b8f4-x2x7q",
		Env:             "prod",
		Version:         "1.4.2",
		Service:         "shop",
		Lang:            "java",
		LangVersion:     "21.0.4+7",
		LangInterpreter: "OpenJDK Runtime Environment",
		TracerVersion:   "otlp-1.52.0",
		RuntimeID:       "6ad3f3ae-7d1c-4d1b-8e9d-3a0a5fd0a1f2",
		ContainerID:     "8f1d2c3b4a5968778695a4b3c2d1e0f8f1d2c3b4a5968778695a4b3c2d1e0f8",
	}
	if got := of(otlptest.SDK("shop")); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if got, want := of([]otlptest.Attribute{
		{"deployment.environment", "old"},
		{"vcs.ref.head.revision", "abc"},
	}), (span.Origin{
		Service: "unknown_service", Env: "old", TracerVersion: "otlp-", GitCommitSHA: "abc",
	}); got != want {
		t.Errorf("%+v, want\n%+v", got, want)
	}
	if got := of([]otlptest.Attribute{{
		"service.name",
		strings.Repeat("x", 300),
	}}); len(got.Service) != span.MaxOriginField {
		t.Errorf("a service of %d bytes", len(got.Service))
	}
}

// TestOrigin_KeepsNamedAttributes: the named attributes are kept in sorted order, even if
// they are labels too. If a body has too many origins, the last ones are reduced to their service.
func TestOrigin_KeepsNamedAttributes(t *testing.T) {
	policy := otel.NewPolicy(otel.Labels{
		Attributes: []string{"tenant", "zone"},
		Resource:   append([]string{"zone", "cloud.region"}, otel.Identifying...),
	})
	resource := func(attributes ...otlptest.Attribute) otlptest.Resource {
		return otlptest.Resource{
			Attributes: append(attributes, otlptest.Attribute{"service.name", "shop"},
				otlptest.Attribute{"host.name", "h"}),
			Scopes: [][]otlptest.Span{{{Name: "x"}}},
		}
	}
	all := countedOf(t, otel.NewCounter(), otlptest.Request(resource(
		otlptest.Attribute{"tenant", "a"}, otlptest.Attribute{"zone", "b"},
		otlptest.Attribute{"service.instance.id", "i"},
		otlptest.Attribute{"k8s.pod.name", "p"}, otlptest.Attribute{"cloud.region", 7},
		otlptest.Attribute{"k8s.pod.uid", "no"},
	)), policy)
	got, tags := "", strings.Join(all[0].key.PeerTags, " ")
	for name, value := range all[0].origin.EachAttribute() {
		got += name + "=" + value + " "
	}
	if want := "cloud.region=7 k8s.pod.name=p service.instance.id=i zone=b "; got != want ||
		tags != "tenant:a zone:b" {
		t.Errorf("%q, want %q; tags %q", got, want, tags)
	}
	with := countedOf(t, otel.NewCounter(),
		otlptest.Request(resource(otlptest.Attribute{"k8s.pod.name", "p"})), policy)[0].fingerprint
	without := countedOf(t, otel.NewCounter(), otlptest.Request(resource()), policy)[0].fingerprint
	if with != without || with == "" {
		t.Errorf("a span has the fingerprint %q, want %q", with, without)
	}
	var many []otlptest.Resource
	for i := range 100 {
		many = append(many, resource(otlptest.Attribute{"k8s.pod.name", fmt.Sprint(i)}))
	}
	origins, spans := map[string]int{}, 0
	for _, s := range countedOf(t, otel.NewCounter(), otlptest.Request(append(many, many...)...), policy) {
		origins[s.origin.Attributes+s.origin.Host]++
		spans++
	}
	if kept := rules.MaxOrigins - 1; spans != 200 || len(origins) != kept+1 ||
		origins[""] != 2*(100-kept) {
		t.Errorf("%d spans of %d origins, %d of the service", spans, len(origins), origins[""])
	}
	for _, wrong := range [][]string{{""}, {"a b"}, make([]string, otel.MaxKept+1)} {
		if (&otel.Labels{Resource: wrong}).Check() == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

// TestBatches_PerOrigin: resources with equal origins share a batch, in whatever order they
// are.
func TestBatches_PerOrigin(t *testing.T) {
	resource := func(service string, names ...string) otlptest.Resource {
		var spans []otlptest.Span
		for _, name := range names {
			spans = append(spans, otlptest.Span{Name: name})
		}
		return otlptest.Resource{Attributes: otlptest.SDK(service), Scopes: [][]otlptest.Span{spans}}
	}
	turned := resource("a", "4")
	slices.Reverse(turned.Attributes)
	c := otel.NewCounter()
	for range 2 {
		got := map[string]string{}
		for _, s := range countedOf(t, c,
			otlptest.Request(resource("a", "1", "2"), resource("b", "3"), turned), standard()) {
			got[s.origin.Service+s.key.Service] += s.key.Resource
		}
		if n := batchesOf(c); n != 2 || got["aa"] != "124" || got["bb"] != "3" ||
			len(c.Request().Spans) != 4 {
			t.Errorf("%d batches: %v", n, got)
		}
	}
	if err := c.Count(otlptest.Request(otlptest.Resource{Attributes: otlptest.SDK("idle")}),
		standard()); err != nil || batchesOf(c) != 0 {
		t.Errorf("a resource without spans has a batch: %v", err)
	}
}

// TestOrigin_AnyNumber: each span is counted once and under its own service, and is
// marked if its origin is less specific than its resource. As many services as fit have a separate
// origin.
func TestOrigin_AnyNumber(t *testing.T) {
	c, keeping := otel.NewCounter(), otel.NewPolicy(otel.Labels{Resource: otel.Identifying})
	for _, test := range []struct {
		attribute                           string
		services, values, services2, shared int
	}{
		{"service.instance.id", 1, 32, 1, 0},
		{"service.instance.id", 1, 33, 1, 2},
		{"host.name", 1, 200, 1, 169},
		{"service.version", 11, 3, 11, 12},
		{"service.version", 16, 3, 16, 32},
		{"host.name", 32, 1, 32, 0},
		{"host.name", 33, 1, 32, 17},
		{"host.name", 100, 2, 32, 184},
	} {
		var all []otlptest.Resource
		for value := range test.values {
			for service := range test.services {
				all = append(all, otlptest.Resource{
					Attributes: []otlptest.Attribute{
						{"service.name", fmt.Sprint("s", service)},
						{"deployment.environment.name", "prod"},
						{"telemetry.sdk.version", fmt.Sprint(value)},
						{test.attribute, fmt.Sprint(value)},
					},
					Scopes: [][]otlptest.Span{{{Name: fmt.Sprint(service, " ", value)}}},
				})
			}
		}
		for _, policy := range []*otel.Policy{standard(), keeping} {
			names, services, shared := map[string]bool{}, map[string]bool{}, 0
			for _, s := range countedOf(t, c, otlptest.Request(all...), policy) {
				service, _, _ := strings.Cut(s.key.Resource, " ")
				if names[s.key.Resource] || s.key.Service != "s"+service || s.origin.Env != "prod" ||
					s.origin.Service != "" && s.origin.Service != s.key.Service {
					t.Errorf("%v: %q of %s is counted under %+v", test, s.key.Resource, s.key.Service, s.origin)
				}
				if _, ok := s.origin.OTLP(); !ok {
					t.Errorf("%v: %+v has no SDK", test, s.origin)
				}
				names[s.key.Resource] = true
				if s.origin.Service != "" {
					services[s.origin.Service] = true
				}
				if s.Flags&span.SharedOrigin != 0 {
					shared++
				} else if (s.origin == span.Origin{}) || s.origin.TracerVersion == span.OTLPVersion {
					t.Errorf("%v: %+v is not marked", test, s.origin)
				}
			}
			if len(names) != len(all) || len(services) != test.services2 || shared != test.shared ||
				batchesOf(c) > rules.MaxBatches {
				t.Errorf("%v: %d of %d spans, %d services with origins, %d shared, %d batches", test,
					len(names), len(all), len(services), shared, batchesOf(c))
			}
			at, seen := map[int]int{}, 0
			for s := range c.Counted {
				if s.SpanIndex != seen || s.IndexInBatch != at[s.Batch] {
					t.Fatalf("span %d is at %d of batch %d", s.SpanIndex, s.IndexInBatch, s.Batch)
				}
				at[s.Batch]++
				seen++
			}
		}
	}
}

// TestOrigin_CommonEnvironmentIsBlocked: an environment that is not common to all of its senders
// is blocked.
func TestOrigin_CommonEnvironmentIsBlocked(t *testing.T) {
	var all []otlptest.Resource
	for i := range 2 * rules.MaxOrigins {
		all = append(all, otlptest.Resource{
			Attributes: []otlptest.Attribute{
				{"service.name", fmt.Sprint(i)}, {"deployment.environment.name", fmt.Sprint(i % 2)},
			},
			Scopes: [][]otlptest.Span{{{Name: "x"}}},
		})
	}
	common := 0
	for _, s := range countedOf(t, otel.NewCounter(), otlptest.Request(all...), standard()) {
		if s.origin.Service != "" {
			continue
		}
		common++
		if want := (span.Origin{Env: span.Blocked, TracerVersion: span.OTLPVersion}); s.origin != want {
			t.Errorf("it is %+v", s.origin)
		}
	}
	if common != rules.MaxOrigins {
		t.Errorf("%d spans have it", common)
	}
}

// batchesOf returns the number of batches of a counter.
func batchesOf(c *otel.Counter) (n int) {
	for range c.Batches {
		n++
	}
	return n
}

// randomSpan returns a span whose labels are likely to differ from those of another span in one
// detail: a byte, the length, or the type.
func randomSpan(rnd *rand.Rand, names []string) (s otlptest.Span) {
	text := func() string {
		return []string{"", "a", "ab", "b", "200", "grpc", strings.Repeat("x", rnd.IntN(700))}[rnd.IntN(7)]
	}
	s = otlptest.Span{
		Trace:  rnd.Uint64(),
		ID:     1,
		Parent: rnd.Uint64N(2),
		Name:   text(),
		Kind:   spantable.Kind(rnd.IntN(6)),
		Start:  otlptest.StartTime,
		End:    otlptest.StartTime + rnd.Uint64N(1e9), Code: rnd.IntN(3),
	}
	for range rnd.IntN(6) {
		a := otlptest.Attribute{names[rnd.IntN(len(names))]}
		switch rnd.IntN(5) {
		case 0:
			a[1] = rnd.IntN(2)
		case 1:
			a[1] = rnd.IntN(2) == 0
		case 2:
			a[1] = float64(rnd.IntN(3))
		default:
			a[1] = text()
		}
		s.Attributes = append(s.Attributes, a)
	}
	return s
}

// TestFingerprint_DecidesTheKey: random spans with equal fingerprints have equal keys, under two
// policies.
func TestFingerprint_DecidesTheKey(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	names := append([]string{"tenant", "zone"}, otel.AttributeNames...)
	policies := []*otel.Policy{
		otel.NewPolicy(otel.Labels{Attributes: []string{"zone", "http.route"}}),
		otel.NewPolicy(otel.Labels{Attributes: []string{"tenant"}}),
	}
	c, fingerprints, spans := otel.NewCounter(), map[string]bool{}, 0
	for range 400 {
		var request []otlptest.Span
		for range 50 {
			request = append(request, randomSpan(rnd, names[:2+rnd.IntN(len(names)-2)]))
		}
		body := otlptest.Request(otlptest.Resource{
			Attributes: otlptest.SDK("s"),
			Scopes:     [][]otlptest.Span{request},
		})
		for _, s := range countedOf(t, c, body, policies[rnd.IntN(2)]) { // countedOf compares the keys
			fingerprints[s.fingerprint] = true
			spans++
		}
	}
	if repeated := spans - len(fingerprints); repeated < 100 {
		t.Errorf("only %d of %d spans have the fingerprint of another one", repeated, spans)
	}
}

// TestKey_SimilarSpans counts pairs of spans that differ in one part of the key. The
// second span must have the key that it has without the first.
func TestKey_SimilarSpans(t *testing.T) {
	base := otlptest.Span{Name: "ab", Kind: spantable.KindClient, Parent: 1}
	with := func(change func(*otlptest.Span)) otlptest.Span {
		s := base
		change(&s)
		return s
	}
	tagged := func(name string, value any) otlptest.Span {
		return with(func(s *otlptest.Span) { s.Attributes = []otlptest.Attribute{{name, value}} })
	}
	long := strings.Repeat("x", rules.MaxFingerprint+64)
	for what, pair := range map[string][2]otlptest.Span{
		"the name":                  {base, with(func(s *otlptest.Span) { s.Name = "ac" })},
		"the kind":                  {base, with(func(s *otlptest.Span) { s.Kind = spantable.KindServer })},
		"whether it is a root":      {base, with(func(s *otlptest.Span) { s.Parent = 0 })},
		"whether it is OK":          {base, with(func(s *otlptest.Span) { s.Code = otlptest.OK })},
		"the label of a tag":        {tagged("db.namespace", "a"), tagged("db.collection.name", "a")},
		"the text of a tag":         {tagged("db.namespace", "a"), tagged("db.namespace", "b")},
		"the number of a tag":       {tagged("db.namespace", 1), tagged("db.namespace", 2)},
		"what a tag was written as": {tagged("db.namespace", 1), tagged("db.namespace", true)},
		"what is longer than is remembered": {
			with(func(s *otlptest.Span) {
				s.Attributes = []otlptest.Attribute{
					{"graphql.operation.type", long[:len(long)-42]},
					{"db.namespace", long[:40] + "a"},
				}
			}),
			with(func(s *otlptest.Span) {
				s.Attributes = []otlptest.Attribute{
					{"graphql.operation.type", long[:len(long)-42]},
					{"db.namespace", long[:40] + "b"},
				}
			}),
		},
		"what is too long": {tagged("db.namespace", long+"a"), tagged("db.namespace", long+"b")},
	} {
		one, other := only(t, pair[0], standard()), only(t, pair[1], standard())
		if bytes.Equal(one.bytes, other.bytes) {
			t.Fatalf("%s: both have the key %q", what, one.bytes)
		}
		got := countedOf(t, otel.NewCounter(),
			otlptest.Request(otlptest.Resource{
				Attributes: otlptest.SDK("shop"),
				Scopes:     [][]otlptest.Span{pair[:]},
			}), standard())
		if !bytes.Equal(got[0].bytes, one.bytes) || !bytes.Equal(got[1].bytes, other.bytes) {
			t.Errorf("%s: after one another the spans have the keys\n%q\n%q, alone\n%q\n%q", what,
				got[0].bytes, got[1].bytes, one.bytes, other.bytes)
		}
	}
}

// TestCounter_ReleasesBody: the counter releases a body, whether or not it
// was counted.
func TestCounter_ReleasesBody(t *testing.T) {
	for _, cut := range []int{0, 1} {
		c := otel.NewCounter()
		last := func() weak.Pointer[byte] {
			body := append(otlptest.SDKRequest(otlptest.Span{State: "ot=th:8"}), otlptest.Web(100)...)
			body = append(body, otlptest.SDKRequest(otlptest.Span{State: "ot=th:c"})...)
			body = slices.Clone(body[:len(body)-cut])
			if err := c.Count(body, standard()); (err == nil) != (cut == 0) {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		c.Release()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("cut by %d: the last body is still held", cut)
		}
		runtime.KeepAlive(c)
	}
}

// TestResourceAttributes_EachAcceptedNameIsKept: this includes names that have a field in the
// origin.
func TestResourceAttributes_EachAcceptedNameIsKept(t *testing.T) {
	for _, name := range append([]string{
		"service.name", "service.version", "deployment.environment.name", "deployment.environment", "host.name",
		"container.id", "telemetry.sdk.name", "telemetry.sdk.language", "telemetry.sdk.version",
		"process.runtime.name", "process.runtime.version", "vcs.ref.head.revision", "server.address",
		"http.method", "cloud.region",
	}, otel.Identifying...) {
		for _, attributes := range [][]string{nil, {name}, {"tenant.id"}} {
			labels := otel.Labels{Attributes: attributes, Resource: []string{name}}
			if err := labels.Check(); err != nil {
				t.Fatal(err)
			}
			body := otlptest.Request(otlptest.Resource{
				Attributes: []otlptest.Attribute{{name, "its value"}}, Scopes: [][]otlptest.Span{{{Name: "x"}}},
			})
			origin := countedOf(t, otel.NewCounter(), body, otel.NewPolicy(labels))[0].origin
			if got := origin.Attribute(name); got != "its value" {
				t.Errorf("%s beside dimensions %q is %q", name, attributes, got)
			}
		}
	}
}

// TestKey_BytesAreBounded: the long name of a service is in the fingerprint of each of its spans.
func TestKey_BytesAreBounded(t *testing.T) {
	body := otlptest.CostlyBodies(1 << 20)["names"]
	for range 2 {
		if err := otel.NewCounter().Count(body, standard()); err != nil {
			t.Errorf("names that stand in the body: %v", err)
		}
	}
	tag := otlptest.Attribute{"zone", string(make([]byte, 1<<10))}
	spans := make([]otlptest.Span, 3000)
	wide := otlptest.Request(otlptest.Resource{
		Attributes: []otlptest.Attribute{tag},
		Scopes:     [][]otlptest.Span{spans},
	})
	policy := otel.NewPolicy(otel.Labels{Attributes: []string{"zone"}})
	c := otel.NewCounter()
	if err := c.Count(wide, policy); !errors.Is(err, spantable.ErrTooMuch) {
		t.Errorf("a tag of a resource in the keys of %d spans: %v", len(spans), err)
	}
	if batchesOf(c) != 0 {
		t.Error("a body that was not counted has batches")
	}
}

// TestCounter_AllocatesNothingPerSpan: only the texts of a resource's origin are allocated.
func TestCounter_AllocatesNothingPerSpan(t *testing.T) {
	var body []byte
	policy, c := standard(), otel.NewCounter()
	round := func() {
		if err := c.Count(body, policy); err != nil {
			t.Fatal(err)
		}
		spans := 0
		for _, batch := range c.Batches {
			spans += len(batch.Snapshots)
		}
		for s := range c.Counted {
			spans -= 1 + s.Batch
		}
		if spans != 0 {
			t.Fatal(spans, " spans more")
		}
		c.Release()
	}
	for _, traces := range []int{1, 100, 500} {
		body = otlptest.Web(traces)
		for range 3 {
			round()
		}
		if n := testing.AllocsPerRun(20, round); n > 16 {
			t.Errorf("%v allocations a body of %d spans", n, 4*traces)
		}
	}
}

// TestWeight_FromTracestate: the weight of a span comes from its tracestate and is
// limited.
func TestWeight_FromTracestate(t *testing.T) {
	for state, want := range map[string]float64{
		"ot=th:c": 4, "ot=th:ffffffffffffff": 1 << 32,
		"malformed": 1,
	} {
		if got := only(t, otlptest.Span{Name: "x", State: state}, standard()).Weight; got != want {
			t.Errorf("%s: %v, want %v", state, got, want)
		}
	}
	body := otlptest.SDKRequest(otlptest.Span{State: "ot=th:8"}, otlptest.Span{State: "ot=th:8"}, otlptest.Span{},
		otlptest.Span{State: "ot=th:c"})
	var got []float64
	for _, s := range countedOf(t, otel.NewCounter(), body, standard()) {
		got = append(got, s.Weight)
	}
	if len(got) != 4 || got[0] != 2 || got[1] != 2 || got[2] != 1 || got[3] != 4 {
		t.Errorf("weights %v", got)
	}
}

// TestCounted_BatchAndIndex: Counted returns the batch of a span, and its index there.
func TestCounted_BatchAndIndex(t *testing.T) {
	of := func(service string, durations ...uint64) (r otlptest.Resource) {
		r.Attributes = otlptest.SDK(service)
		for _, d := range durations {
			r.Scopes = append(r.Scopes, []otlptest.Span{{End: d}})
		}
		return r
	}
	c := otel.NewCounter()
	if err := c.Count(otlptest.Request(of("a", 1, 2), of("b", 3), of("idle"), of("a", 4, 5)),
		standard()); err != nil {
		t.Fatal(err)
	}
	var durations [][]uint64
	for _, batch := range c.Batches {
		var all []uint64
		for _, s := range batch.Snapshots {
			all = append(all, s.Duration)
		}
		durations = append(durations, all)
	}
	seen := 0
	for s := range c.Counted {
		if want := c.Request().Spans[s.SpanIndex].Duration; s.SpanIndex != seen || durations[s.Batch][s.IndexInBatch] != want {
			t.Errorf("span %d is reported as %d of batch %d", s.SpanIndex, s.IndexInBatch, s.Batch)
		}
		seen++
	}
	if seen != 5 || len(durations) != 2 {
		t.Errorf("%d spans, %v", seen, durations)
	}
}

// TestCount_SkipsMarkedResources checks that a resource whose client has already counted its spans is left out, by the
// attribute _dd.stats_computed, and that the spans of other resources keep their numbers.
func TestCount_SkipsMarkedResources(t *testing.T) {
	c := otel.NewCounter()
	for value, isMarked := range map[any]bool{
		true: true, "true": true, "yes": true, 1: true, false: false, "false": false, "": false,
	} {
		marked := otlptest.Resource{
			Attributes: append(otlptest.SDK("marked"), otlptest.Attribute{"_dd.stats_computed", value}),
			Scopes:     [][]otlptest.Span{{{End: 1}, {End: 2}}},
		}
		unmarked := otlptest.Resource{Attributes: otlptest.SDK("unmarked"), Scopes: [][]otlptest.Span{{{End: 3}}}}
		spans := countedOf(t, c, otlptest.Request(marked, unmarked), standard())
		counted, skipped := []int{0, 1, 2}, 0
		if isMarked {
			counted, skipped = []int{2}, 2
		}
		var numbers []int
		for s := range c.Counted {
			numbers = append(numbers, s.SpanIndex)
		}
		if len(spans) != len(counted) || !slices.Equal(numbers, counted) || c.Skipped() != skipped {
			t.Errorf("%v: counted spans %v, want %v; skipped %d, want %d", value, numbers, counted, c.Skipped(), skipped)
		}
		if last := spans[len(spans)-1]; last.origin.Service != "unmarked" || last.Duration != 3 {
			t.Errorf("%v: the last counted span is %+v", value, last)
		}
	}
}
