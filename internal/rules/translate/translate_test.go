package translate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/translate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// TestRequest_BecomesTraces: each resource with spans becomes a sender, and each of its traces a
// group. test/agent compares the spans with the agent's own code.
func TestRequest_BecomesTraces(t *testing.T) {
	c := translator(t, wantedTags...)
	spans := []otlptest.Span{
		{
			Trace: 7, ID: 1, Name: "x", Kind: spantable.KindServer, Start: 5, End: 8, State: "ot=th:8", Attributes: []otlptest.Attribute{
				{"http.request.method", "GET"},
				{"http.route", "/carts"},
				{"http.response.status_code", 200},
				{"server.address", "shop"},
				{"thread.id", 1},
			},
		},
		{
			Trace: 8, ID: 3, Name: "other", Start: 9, End: 8, Code: otlptest.Error,
			Attributes: []otlptest.Attribute{{"_dd.measured", 1}, {"env", "mine"}, {"peer.service", "own"}},
		},
		{
			Trace: 7, ID: 2, Parent: 1, Name: "y", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{
				{"db.system", "PostgreSQL"},
				{"db.statement", "SELECT 1"},
				{"db.namespace", "shop"},
			},
		},
	}
	shop := otlptest.Resource{
		Attributes: append(otlptest.SDK("shop"), otlptest.Attribute{"peer.service", "its"}),
		Scopes:     [][]otlptest.Span{spans[:1], nil, spans[1:]},
	}
	got := sentOf(t, c, otlptest.Resource{Attributes: otlptest.SDK("idle")}, shop, from(nil, spans[0]))
	if len(got) != 2 || len(got[0].Traces) != 2 || len(got[1].Traces) != 1 {
		t.Fatalf("%+v", got)
	}
	if s := got[0]; s.Lang != "java" || s.TracerVersion != "otlp-1.52.0" || s.Env != "prod" ||
		!strings.HasPrefix(s.Container, "8f1d") {
		t.Errorf("%+v", s)
	}
	if g := c.table.Groups[0]; g.Priority != 1 || !g.HasPriority || g.TraceLow != 7 {
		t.Errorf("%+v", g)
	}
	want := [][]agentSpan{
		{
			{
				"shop", "http.server.request", "GET /carts", "web", 1, 0, 5, 3, "server", false,
				map[string]string{"http.server_name": "shop", "peer.service": "its"},
				map[string]float64{"http.status_code": 200, "_sample_rate": 0.5},
			},
			{
				"shop", "postgresql.query", "SELECT 1", "sql", 2, 1, 0, 0, "client", false,
				map[string]string{"db.name": "shop", "peer.service": "its"},
				map[string]float64{},
			},
		},
		{{
			"shop", "Internal", "other", "custom", 3, 0, 9, 0, "unspecified", true,
			map[string]string{"peer.service": "own"},
			map[string]float64{"_dd.measured": 1},
		}},
	}
	if !reflect.DeepEqual(got[0].Traces, want) {
		t.Errorf("%+v, want\n%+v", got[0].Traces, want)
	}
	if bare := got[1].Traces[0][0]; bare.Service != "otlpresourcenoservicename" ||
		got[1].TracerVersion != "otlp-" {
		t.Errorf("%+v", got[1])
	}
}

// TestSender_FromSpans: for a trace, the first span with an attribute counts; for a
// sender, the last trace, unless the resource has the attribute.
func TestSender_FromSpans(t *testing.T) {
	c := translator(t, wantedTags...)
	spanWith := func(trace uint64, name, value string) otlptest.Span {
		return otlptest.Span{Trace: trace, ID: 1, Attributes: []otlptest.Attribute{{name, value}}}
	}
	got := sentOf(t, c, from(nil,
		spanWith(1, "_dd.origin", "first"), spanWith(1, "_dd.origin", "second"), spanWith(2, "env", "a"),
		spanWith(1, "version", "v1"),
		spanWith(3, "env", "b"), spanWith(2, "version", "v2"), spanWith(4, "_dd.git.commit.sha", "c"),
		spanWith(4, "_dd.git.commit.sha", "d"),
	))[0]
	if want := []string{"first", "", "", ""}; !slices.Equal(got.Origins, want) {
		t.Errorf("the origins are %q, want %q", got.Origins, want)
	}
	if got.Env != "b" || got.Version != "v2" || got.Commit != "c" {
		t.Errorf("%+v", got)
	}
	if got := sentOf(t, c, from(otlptest.SDK("shop"), spanWith(1, "env", "a")))[0]; got.Env != "prod" {
		t.Errorf("%+v", got)
	}
}

// TestRequest_CountedIsNotTranslated covers a marker on the resource and one on the request.
func TestRequest_CountedIsNotTranslated(t *testing.T) {
	c := translator(t)
	spans := [][]otlptest.Span{{{Name: "x"}}, {{Name: "y"}, {Name: "z"}}}
	check := func(what any, body []byte, isCounted bool, want int) {
		t.Helper()
		if err := c.translate(body, isCounted); err != nil {
			t.Fatal(err)
		}
		if got := c.sent(); c.Counted() != want || (len(got) == 0) != (want > 0) ||
			c.request.Resources[0].IsCounted != (want > 0) {
			t.Errorf("%v, of a request that says %v: %d senders, %d spans counted before", what, isCounted,
				len(got), c.Counted())
		}
	}
	for value, counted := range map[any]int{
		true: 3, "true": 3, "what": 3, 1: 3, false: 0, "false": 0,
		"FALSE": 0, "": 0,
	} {
		attrs := []otlptest.Attribute{{otlp.StatsComputed, value}}
		body := otlptest.Request(otlptest.Resource{Attributes: attrs, Scopes: spans})
		check(value, body, false, counted)
		check(value, body, true, counted)
	}
	body := otlptest.Request(otlptest.Resource{Scopes: spans})
	check("nothing", body, false, 0)
	check("nothing", body, true, 3)
}

// TestTag_TextAndNumber: if a tag has a text and a number, the value counts that the agent's
// statistics read.
func TestTag_TextAndNumber(t *testing.T) {
	c := translator(t, "_sample_rate", "grpc.code", "http.status_code", "peer.service")
	for name, want := range map[string]string{
		"_sample_rate": "map[] map[_sample_rate:2]", "grpc.code": "map[grpc.code:three] map[]",
		"http.status_code": "map[] map[http.status_code:2]", "peer.service": "map[peer.service:three] map[]",
	} {
		both := []otlptest.Attribute{{name, 2}, {name, "three"}}
		s := sentOf(t, c, from(nil, otlptest.Span{Attributes: both}))[0].Traces[0][0]
		if got := fmt.Sprint(s.Texts, " ", s.Numbers); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	s := sentOf(t, c,
		from(nil, otlptest.Span{Attributes: []otlptest.Attribute{{"grpc.code", 2}}}))[0].Traces[0][0]
	if s.Numbers["grpc.code"] != 2 {
		t.Errorf("a status that is a number: %v", s.Numbers)
	}
	alone := otlptest.Span{Attributes: []otlptest.Attribute{{"_sample_rate", "0.5"}, {"peer.service", 2}}}
	if s := sentOf(t, c, from(nil, alone))[0].Traces[0][0]; len(s.Texts)+len(s.Numbers) > 0 {
		t.Errorf("a rate that is a text, and a peer that is a number: %v, %v", s.Texts, s.Numbers)
	}
	for number, want := range map[float64]string{
		0.5:  "map[http.status_code:200] map[]",
		1e30: "map[http.status_code:200] map[]", 404: "map[] map[http.status_code:404]",
	} {
		both := otlptest.Span{Attributes: []otlptest.Attribute{{"http.response.status_code", number}}}
		body := scoped(otlptest.Attribute{"http.status_code", "200"}, both)
		if err := c.translate(body, false); err != nil {
			t.Fatal(err)
		}
		s := c.sent()[0].Traces[0][0]
		if got := fmt.Sprint(s.Texts, " ", s.Numbers); got != want {
			t.Errorf("%v and 200: %s, want %s", number, got, want)
		}
	}
}

// TestRequest_Untranslatable: a list that would become a tag, text beyond the limit, and tags with too
// many attributes.
func TestRequest_Untranslatable(t *testing.T) {
	c := translator(t, wantedTags...)
	list := otlptest.Attribute{"peer.service", otlptest.Field(nil, 5, nil)}
	many := make([]otlptest.Span, 4000)
	for i := range many {
		many[i] = otlptest.Span{Name: fmt.Sprint(i), ID: 1, Kind: spantable.KindServer, Code: -1}
	}
	var attrs []otlptest.Attribute
	for _, tag := range wantedTags {
		attrs = append(attrs, otlptest.Attribute{tag, strings.Repeat("Ä b", 60)})
	}
	for _, name := range []string{"operation.name", "http.request.method", "http.route"} {
		attrs = append(attrs, otlptest.Attribute{name, strings.Repeat("Ä b", 60)})
	}
	for name, test := range map[string]struct {
		body []byte
		want error
	}{
		"a list": {
			otlptest.SDKRequest(otlptest.Span{Attributes: []otlptest.Attribute{list}}),
			otlp.ErrUnparsable,
		},
		"a list of a resource": {
			otlptest.Request(from([]otlptest.Attribute{list}, otlptest.Span{})),
			otlp.ErrUnparsable,
		},
		"a list of a scope": {scoped(list, otlptest.Span{}), otlp.ErrUnparsable},
		"long names":        {otlptest.Request(from(attrs, many...)), spantable.ErrTooMuch},
		"no request":        {[]byte{0x0a}, otlp.ErrUnparsable},
	} {
		if err := c.translate(test.body, false); !errors.Is(err, test.want) ||
			!errors.Is(c.request.Err(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if name != "no request" && len(c.table.Spans)+len(c.table.Groups) > 0 {
			t.Errorf("%s: there are traces", name)
		}
	}
	names := []string{""}
	for i := range spantable.MaxLabels - 1 {
		names = append(names, fmt.Sprint("tag-", i))
	}
	if _, err := translate.New(spantable.NewNames(names)); err == nil {
		t.Error("too many tags were accepted")
	}
	if _, err := translate.New(spantable.NewNames(names[:spantable.MaxLabels-len(translate.AttributeNames)])); err != nil {
		t.Error(err)
	}
}

// TestHost_FromResource: the host name is determined from the resource in the order of the
// ingest.
func TestHost_FromResource(t *testing.T) {
	check := func(want string, attrs ...otlptest.Attribute) {
		t.Helper()
		if got := sentOf(t, translator(t), from(attrs, otlptest.Span{ID: 1}))[0].Host; got != want {
			t.Errorf("%v: the host is %q, want %q", attrs, got, want)
		}
	}
	for want, attrs := range map[string][]otlptest.Attribute{
		"":        {},
		"literal": {{"host", "literal"}, {"datadog.host.name", "custom"}, {"host.name", "h"}},
		"5":       {{"host", 5}, {"host.name", "h"}},
		"custom": {
			{"datadog.host.name", "custom"},
			{"cloud.provider", "aws"},
			{"host.id", "i-1"},
			{"host.name", "h"},
		},
		"i-1": {
			{"cloud.provider", "aws"},
			{"host.id", "i-1"},
			{"host.name", "h"},
			{"k8s.node.name", "n"},
		},
		"vm.p": {
			{"cloud.provider", "gcp"},
			{"host.name", "vm.c.p.internal"},
			{"cloud.account.id", "p"},
			{"host.id", "4"},
		},
		"vm.x.p":    {{"cloud.provider", "gcp"}, {"host.name", "vm.x"}, {"cloud.account.id", "p"}},
		"id":        {{"cloud.provider", "azure"}, {"host.id", "id"}, {"host.name", "h"}},
		"n-cluster": {{"k8s.node.name", "n"}, {"k8s.cluster.name", "cluster"}, {"host.name", "pod"}},
		"n":         {{"k8s.node.name", "n"}, {"host.id", "id"}, {"host.name", "pod"}},
		"id2":       {{"host.id", "id2"}, {"host.name", "h"}},
		"h":         {{"host.name", "h"}, {"service.name", "s"}},
	} {
		check(want, attrs...)
	}
	for _, attrs := range [][]otlptest.Attribute{
		{{"host.name", "localhost"}},
		{{"aws.ecs.launchtype", "fargate"}, {"host.name", "h"}},
		{{"cloud.provider", "aws"}, {"host.name", "h"}},
		{{"cloud.provider", "gcp"}, {"host.name", "h"}},
		{{"cloud.platform", "gcp_cloud_run"}, {"host.name", "h"}},
	} {
		check("", attrs...)
	}
}

// TestSpan_IndependentOfEarlierSpans: no span depends on the spans before it.
func TestSpan_IndependentOfEarlierSpans(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	names := append(slices.Clone(translate.AttributeNames), "peer.service", "env", "_dd.origin")
	values := []any{
		"a", "b", "ab", "", 200, 1, true, 1.5, strings.Repeat("long", 80),
		strings.Repeat("longer", 200),
	}
	c := translator(t, wantedTags...)
	for range 300 {
		var resources []otlptest.Resource
		var alone [][]byte
		for range 1 + rnd.IntN(3) {
			res := otlptest.Resource{Attributes: otlptest.SDK([]string{"a", "b"}[rnd.IntN(2)])[:1+rnd.IntN(8)]}
			var spans []otlptest.Span
			for range rnd.IntN(30) {
				s := otlptest.Span{
					Trace: rnd.Uint64(),
					ID:    rnd.Uint64(),
					Name:  []string{"a", "b"}[rnd.IntN(2)],
					Kind:  spantable.Kind(rnd.IntN(6)),
					Code:  rnd.IntN(3), State: []string{"", "", "ot=th:8", "ot=th:c"}[rnd.IntN(4)],
				}
				for range rnd.IntN(3) {
					s.Attributes = append(s.Attributes,
						otlptest.Attribute{names[rnd.IntN(len(names))], values[rnd.IntN(len(values))]})
				}
				spans = append(spans, s)
				alone = append(alone,
					otlptest.Request(otlptest.Resource{
						Attributes: res.Attributes,
						Scopes:     [][]otlptest.Span{{s}},
					}))
			}
			res.Scopes = [][]otlptest.Span{spans[:len(spans)/2], spans[len(spans)/2:]}
			resources = append(resources, res)
		}
		want := map[uint64]agentSpan{}
		for _, body := range alone {
			if err := c.translate(body, false); err != nil {
				t.Fatal(err)
			}
			s := c.sent()[0].Traces[0][0]
			want[s.SpanID] = s
		}
		got := 0
		for _, sender := range sentOf(t, c, resources...) {
			for _, trace := range sender.Traces {
				for _, s := range trace {
					if got++; !reflect.DeepEqual(s, want[s.SpanID]) {
						t.Fatalf("made is\n%+v, alone\n%+v", s, want[s.SpanID])
					}
				}
			}
		}
		if got != len(want) {
			t.Fatalf("%d spans of %d", got, len(want))
		}
	}
}

// TestResource_TagsAreAddedOnce: each tag of a resource or scope is added once to each span,
// however often it occurs, so that the time is proportional to the length of the request.
func TestResource_TagsAreAddedOnce(t *testing.T) {
	c := translator(t, wantedTags...)
	var attrs []otlptest.Attribute
	for i := range 1002 {
		value := []string{"", "first", "last"}[i%3]
		attrs = append(attrs, otlptest.Attribute{"peer.service", value}, otlptest.Attribute{"grpc.code", i})
	}
	scope := []byte(nil)
	for _, a := range attrs {
		scope = otlptest.Field(scope, 3, a.Encode())
	}
	spans := otlptest.Field(otlptest.Field(nil, 1, scope), 2, otlptest.Span{ID: 1}.Encode())
	for want, body := range map[string][]byte{
		"first": otlptest.Request(from(attrs, otlptest.Span{ID: 1})),
		"last":  otlptest.Field(nil, 1, otlptest.Field(nil, 2, spans)),
	} {
		if err := c.translate(body, false); err != nil {
			t.Fatal(err)
		}
		if resourceTags, scopeTags := translate.Given(c.Translator); resourceTags+scopeTags != 1 {
			t.Errorf("each span gets %d tags from its resource and %d from its scope", resourceTags, scopeTags)
		}
		if got := c.sent()[0].Traces[0][0].Texts["peer.service"]; got != want {
			t.Errorf("the tag is %q, not %q", got, want)
		}
	}
}

// TestResource_FirstAttributeCounts: if two attributes become one tag, the first one
// counts.
func TestResource_FirstAttributeCounts(t *testing.T) {
	c := translator(t, wantedTags...)
	server, host := otlptest.Attribute{"server.address", "server"}, otlptest.Attribute{
		"http.server_name",
		"host",
	}
	for want, attrs := range map[string][]otlptest.Attribute{
		"server": {server, host},
		"host":   {host, server},
	} {
		got := sentOf(t, c, from(attrs, otlptest.Span{ID: 1}))[0].Traces[0][0].Texts["http.server_name"]
		if got != want {
			t.Errorf("%v: the tag is %q", attrs, got)
		}
	}
}

// TestTranslator_RetainsNoBody: a translator does not retain a body that its request and
// table released.
func TestTranslator_RetainsNoBody(t *testing.T) {
	c := translator(t, wantedTags...)
	last := func() weak.Pointer[byte] {
		body := slices.Clone(otlptest.Web(100))
		if err := c.translate(body, false); err != nil {
			t.Fatal(err)
		}
		return weak.Make(&body[0])
	}()
	c.request.Release()
	c.table.Release()
	if runtime.GC(); last.Value() != nil {
		t.Error("the last body is still held")
	}
	if got := sentOf(t, c, from(nil, otlptest.Span{Name: "x"})); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestTranslator_AllocatesNothing: translating a span allocates nothing once the translator is
// warm.
func TestTranslator_AllocatesNothing(t *testing.T) {
	body, c := otlptest.Web(100), translator(t, wantedTags...)
	round := func() {
		if err := c.translate(body, false); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations a body of 400 spans", n)
	}
}

// FuzzTranslate verifies that each span of any request is in one trace or was counted before, and
// that all texts are within the table.
func FuzzTranslate(f *testing.F) {
	f.Add(otlptest.Web(2))
	f.Add(otlptest.SDKRequest(otlptest.Span{
		Trace:      1,
		Attributes: []otlptest.Attribute{{"http.status_code", 2.5}, {otlp.StatsComputed, true}},
	}))
	c := translator(f, wantedTags...)
	f.Fuzz(func(t *testing.T, body []byte) {
		before := bytes.Clone(body)
		if c.translate(body, false) != nil {
			return
		}
		spans := c.Counted()
		for _, sender := range c.sent() {
			for _, trace := range sender.Traces {
				spans += len(trace)
			}
		}
		if spans != len(c.request.Spans) || len(c.table.Derived) > c.table.Limits.DerivedBytes ||
			!bytes.Equal(body, before) {
			t.Fatalf("%d spans of %d, %d bytes are made", spans, len(c.request.Spans), len(c.table.Derived))
		}
	})
}

// BenchmarkTranslate measures decoding and translating a request.
func BenchmarkTranslate(b *testing.B) {
	c, body := translator(b, wantedTags...), otlptest.Web(128)
	b.ReportAllocs()
	for b.Loop() {
		if err := c.translate(body, false); err != nil {
			b.Fatal(err)
		}
	}
}
