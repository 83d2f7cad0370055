package datadog_test

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// ingested is a table like those of package translate.
type ingested struct {
	spantable.Table
	names *spantable.Names
}

func newIngested(p *datadog.Policy) *ingested {
	in := &ingested{names: p.Names()}
	in.Reset(nil, spantable.LimitsOf(1<<16, 8))
	return in
}

func (in *ingested) text(s string) spantable.Text {
	start := len(in.Derived)
	in.Derived = append(in.Derived, s...)
	return in.DerivedSince(start)
}

// add adds a trace of one span with these tags, which are texts or numbers.
func (in *ingested) add(kind spantable.Kind, tags map[string]any) {
	g := spantable.Group{SpanStart: uint32(len(in.Spans)), Priority: 1, HasPriority: true}
	s := in.AddSpan(kind)
	s.ID, s.Start, s.Duration = 7, 1e18, 1
	s.Service, s.Name, s.Resource, s.Type = in.text("shop"), in.text("op"), in.text("r"), in.text("custom")
	for name, value := range tags {
		tag := spantable.Tag{Label: in.names.Find([]byte(name))}
		if n, ok := value.(float64); ok {
			tag.Type, tag.Bits = spantable.TypeNumber, math.Float64bits(n)
		} else {
			tag.Type, tag.Bits = spantable.TypeText, spantable.TextBits(in.text(value.(string)))
		}
		in.Tags = append(in.Tags, tag)
	}
	s.TagEnd = uint32(len(in.Tags))
	in.AddGroup(g)
}

// sentBy sets the sender of the added traces.
func (in *ingested) sentBy(host, env string) {
	in.Senders = append(in.Senders, spantable.Sender{
		Host:          in.text(host),
		Env:           in.text(env),
		Lang:          in.text("go"),
		TracerVersion: in.text("otlp-1"),
		Container:     in.text("c"),
	})
}

// TestTranslatedRequest_KindAndStatus: an unspecified span kind stays unspecified, and any number
// is accepted as a status. The same counter handles a tracer's body differently.
func TestTranslatedRequest_KindAndStatus(t *testing.T) {
	c, policy := datadog.NewCounter(), policyOf(t)
	for _, test := range []struct {
		kind   spantable.Kind
		status any
		want   span.Key
	}{
		{spantable.KindUnspecified, 5.0, span.Key{Kind: "unspecified", HTTPStatus: 5}},
		{spantable.KindClient, 5.0, span.Key{Kind: "client", HTTPStatus: 5}},
		{spantable.KindClient, "5", span.Key{Kind: "client"}},
		{spantable.KindInternal, 200.0, span.Key{Kind: "internal", HTTPStatus: 200}},
	} {
		in := newIngested(policy)
		in.add(test.kind, map[string]any{"_dd.measured": 1.0, "http.status_code": test.status})
		in.sentBy("h", "e")
		if err := c.CountIngested(&in.Table, policy); err != nil {
			t.Fatal(err)
		}
		check := func(want span.Key) {
			t.Helper()
			for _, s := range countedBy(t, c) {
				var k span.Key
				if err := wire.ReadKey(&k, []byte(s.key)); err != nil || k.Kind != want.Kind ||
					k.HTTPStatus != want.HTTPStatus {
					t.Errorf("it is of kind %q with the status %d, want %q and %d", k.Kind, k.HTTPStatus,
						want.Kind, want.HTTPStatus)
				}
			}
		}
		if check(test.want); countedSpans(t, c) != 1 {
			t.Errorf("%d spans were counted", countedSpans(t, c))
		}
		body := encode(t, []any{[]any{ordered{
			"service", "shop", "name", "op", "resource", "r", "span_id", 7, "parent_id", 0, "start",
			int64(1e18), "duration", 1,
			"error", 0, "type", "custom", "meta",
			map[string]string{"span.kind": test.kind.String()},
			"metrics",
			map[string]float64{"_dd.measured": 1, "http.status_code": 5},
		}}})
		if err := c.Count(decode.FormatV04, body, "", false, policy); err != nil {
			t.Fatal(err)
		}
		if test.kind == spantable.KindUnspecified {
			test.kind = spantable.KindInternal
		}
		check(span.Key{Kind: test.kind.String()})
	}
}

// TestPolicy_Tags: Tags returns the tags of the rules and the peer tags.
func TestPolicy_Tags(t *testing.T) {
	named := map[string]bool{}
	for _, name := range policyOf(t).Tags() {
		named[name] = true
	}
	if !named["span.kind"] || !named["_dd.measured"] || !named["out.host"] || named[""] ||
		named["component"] {
		t.Errorf("tags %v", named)
	}
}

// TestSenders_EachHasBatch checks that each sender of a request has its own batch. Senders whose
// truncated values are equal share one.
func TestSenders_EachHasBatch(t *testing.T) {
	long, policy := strings.Repeat("x", span.MaxOriginField), policyOf(t)
	c := datadog.NewCounter()
	for range 2 {
		in := newIngested(policy)
		for _, one := range [][3]string{
			{"a", "e", ""},
			{"b", "e", ""},
			{"a", "e", ""},
			{"a", "e", "base"},
			{"a", "f", ""},
			{long + "1", "e", ""},
			{long + "2", "e", ""},
		} {
			tags := map[string]any{"_dd.measured": 1.0}
			if one[2] != "" {
				tags["_dd.base_service"] = one[2]
			}
			in.add(spantable.KindServer, tags)
			in.sentBy(one[0], one[1])
		}
		if err := c.CountIngested(&in.Table, policy); err != nil {
			t.Fatal(err)
		}
		got := map[span.Origin]int{}
		for origin, batch := range c.IngestedBatches {
			if got[origin] != 0 {
				t.Fatalf("%+v has two batches", origin)
			}
			got[origin] = len(batch.Snapshots)
		}
		of := func(host, env, service string) span.Origin {
			return span.Origin{
				Host: host, Env: env, Service: service, Lang: "go", TracerVersion: "otlp-1",
				ContainerID: "c",
			}
		}
		want := map[span.Origin]int{
			of("a", "e", ""): 2, of("b", "e", ""): 1, of("a", "e", "base"): 1, of("a", "f", ""): 1,
			of(long, "e", ""): 2,
		}
		if !maps.Equal(got, want) {
			t.Errorf("%+v, want\n%+v", got, want)
		}
		c.Release()
		for origin := range c.IngestedBatches {
			t.Errorf("%+v is left", origin)
		}
	}
}

// TestSenders_MoreThanLimit: with many hosts, environments or base services, each span is
// counted once, and is marked if its origin is less specific than its sender.
func TestSenders_MoreThanLimit(t *testing.T) {
	c, policy := datadog.NewCounter(), policyOf(t)
	for _, test := range []struct {
		hosts, envs, bases     int
		origins, shared, named int
	}{
		{32, 1, 1, 32, 0, 32},
		{33, 1, 1, 32, 2, 31},
		{200, 1, 1, 32, 169, 31},
		{1, 200, 1, 33, 184, 16},
		{1, 1, 32, 32, 0, 32},
		{1, 1, 40, 33, 8, 32},
		{4, 1, 40, 33, 128, 32},
		{40, 1, 40, 33, 1568, 32},
	} {
		in := newIngested(policy)
		in.Limits = spantable.LimitsOf(1<<20, 8)
		for host := range test.hosts {
			for env := range test.envs {
				for base := range test.bases {
					tags := map[string]any{"_dd.measured": 1.0}
					if test.bases > 1 {
						tags["_dd.base_service"] = fmt.Sprint("base", base)
					}
					in.add(spantable.KindServer, tags)
					in.sentBy(fmt.Sprint("h", host), fmt.Sprint("e", env))
				}
			}
		}
		if err := c.CountIngested(&in.Table, policy); err != nil {
			t.Fatalf("%v: %v", test, err)
		}
		spans, shared, named, origins := 0, 0, 0, map[span.Origin]bool{}
		for origin, batch := range c.IngestedBatches {
			if origins[origin] || origin.Lang != "go" || !strings.HasPrefix(origin.TracerVersion, "otlp-") {
				t.Errorf("%v: %+v", test, origin)
			}
			origins[origin] = true
			for _, s := range batch.Snapshots {
				if spans++; s.Flags&span.SharedOrigin != 0 {
					shared++
				}
			}
			if origin.Host != "" {
				named++
			}
		}
		if want := test.hosts * test.envs * test.bases; spans != want || len(origins) != test.origins ||
			shared != test.shared || named != test.named {
			t.Errorf("%v: %d of %d spans, %d shared; %d origins, %d of a host", test, spans, want, shared,
				len(origins), named)
		}
	}
}

// TestEnvironment_EmptyAfterNormalization: if the normalized environment of a tracer or
// an OTLP request is empty, the origin has none, so that the agent uses its own.
func TestEnvironment_EmptyAfterNormalization(t *testing.T) {
	c, policy := datadog.NewCounter(), policyOf(t)
	for env, want := range map[string]string{
		"prod":                         "prod",
		"Pröd!":                        "Pröd!",
		"":                             "",
		"!!":                           "",
		"\uFFFD":                       "",
		"\xff\xfe":                     "",
		" _":                           "",
		"_a":                           "_a",
		strings.Repeat("!", 400) + "a": "",
	} {
		in := newIngested(policy)
		in.add(spantable.KindServer, map[string]any{"_dd.measured": 1.0})
		in.sentBy("host", env)
		if err := c.CountIngested(&in.Table, policy); err != nil {
			t.Fatal(err)
		}
		for origin := range c.IngestedBatches {
			if origin.Env != want {
				t.Errorf("%q of OTLP is %q, want %q", env, origin.Env, want)
			}
		}
		traces := webTraces(1)
		for i := range traces[0] {
			traces[0][i].Meta["env"] = env
		}
		if err := c.Count(decode.FormatV04, encode(t, traces), "go", true, policy); err != nil {
			t.Fatal(err)
		}
		if got := c.Origin(span.Origin{}).Env; got != want {
			t.Errorf("%q of a tracer is %q, want %q", env, got, want)
		}
	}
}

// TestLimits_TextReferences: a table that refers to a text too often, or needs too many
// derived texts, is left to the agent.
func TestLimits_TextReferences(t *testing.T) {
	policy := policyOf(t)
	in := newIngested(policy)
	in.Limits.DerivedBytes = 100
	in.add(spantable.KindServer, nil)
	in.sentBy("h", "e")
	if err := datadog.NewCounter().CountIngested(&in.Table, policy); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		in.add(spantable.KindServer, nil)
		in.sentBy("h", "e")
	}
	if err := datadog.NewCounter().CountIngested(&in.Table, policy); err == nil {
		t.Error("more was made than may be")
	}
}
