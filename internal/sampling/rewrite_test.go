package sampling_test

import (
	"bytes"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// goldenMark is the mark as protobuf encoders write it.
const goldenMark = "\n\x1c\n\x12_dd.stats_computed\x12\x06\n\x04true"

// marked returns the forwarded part of a body with marks.
func markedSize(t *testing.T, body []byte, k *sampling.Policy) []byte {
	t.Helper()
	got, _ := leftOf(t, nil, body, k, true)
	return got
}

// TestMark_EachResource: each resource with spans is marked once, and nothing else in
// the body changes, wherever the resource is.
func TestMark_EachResource(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	unknown := func(text string) []byte { return otlptest.Field(nil, 100, []byte(text)) }
	service := otlptest.Field(nil, 1, otlptest.Attribute{"service.name", "shop"}.Encode())
	says := func(v any) []byte {
		return otlptest.Field(nil, 1, otlptest.Attribute{otlp.StatsComputed, v}.Encode())
	}
	resource := func(content ...[]byte) []byte { return otlptest.Field(nil, 1, join(content...)) }
	scope := otlptest.Field(nil, 2,
		otlptest.Field(nil, 2, otlptest.Span{Trace: 1 << 55, Name: "here"}.Encode()))
	ends := otlptest.Field(nil, 2, otlptest.Field(nil, 2, otlptest.Span{Trace: 1, Name: "there"}.Encode()))
	raised := otlptest.Field(otlptest.Span{Trace: 1 << 55, Name: "here"}.Encode(), 3, []byte("ot=th:8"))
	kept := otlptest.Field(nil, 2, otlptest.Field(nil, 2, raised))
	empty := otlptest.Field(nil, 2, nil)
	of := func(content ...[]byte) []byte { return otlptest.Field(nil, 1, join(content...)) }
	mark := []byte(goldenMark)
	half := &sampling.Policy{Share: 0.5}
	for name, test := range map[string]struct {
		body, want []byte
		k          *sampling.Policy
	}{
		"before its scopes": {of(resource(service), scope), of(resource(service, mark), scope), nil},
		"after its scopes": {
			of(scope, resource(service), unknown("x")),
			of(scope, resource(service, mark), unknown("x")), nil,
		},
		"between its scopes": {
			of(scope, unknown("x"), resource(service), scope),
			of(scope, unknown("x"), resource(service, mark), scope), nil,
		},
		"a resource that is empty": {of(resource(), scope), of(resource(mark), scope), nil},
		"no resource":              {of(unknown("x"), scope), of(resource(mark), unknown("x"), scope), nil},
		"no spans":                 {of(resource(service), empty), of(resource(service), empty), nil},
		"it says so already": {
			of(resource(says("true"), service), scope),
			of(resource(says("true"), service), scope), nil,
		},
		"it says false": {
			of(resource(says("false"), service), scope),
			of(resource(service, mark), scope), nil,
		},
		"it says so in another form": {
			of(resource(says(true), service), scope),
			of(resource(service, mark), scope), nil,
		},
		"it says both": {
			of(resource(says("true"), service, says(false)), scope),
			of(resource(service, mark), scope), nil,
		},
		"it says both in turn": {
			of(resource(says(false), service, says("true")), scope),
			of(resource(service, mark), scope), nil,
		},
		"unknown fields": {
			of(resource(unknown("x"), service), scope),
			of(resource(unknown("x"), service, mark), scope), nil,
		},
		"two resources": {
			join(unknown("1"), of(resource(service), scope), unknown("2"), of(resource(), scope),
				unknown("3")),
			join(unknown("1"), of(resource(service, mark), scope), unknown("2"), of(resource(mark), scope),
				unknown("3")), nil,
		},
		"a part is forwarded": {
			join(of(resource(service), scope, ends), of(resource(service), ends),
				of(resource(service), empty)),
			join(of(resource(service, mark), kept), of(resource(service), empty)), half,
		},
		"everything is forwarded": {of(resource(service), scope), of(resource(service, mark), kept), half},
	} {
		if got := markedSize(t, test.body, test.k); !bytes.Equal(got, test.want) {
			t.Errorf("%s: forwarded\n%q, want\n%q", name, got, test.want)
		}
		if twice := markedSize(t, markedSize(t, test.body, nil), nil); !bytes.Equal(twice,
			markedSize(t, test.body, nil)) {
			t.Errorf("%s: what says so says so again", name)
		}
	}
}

// TestMark_CountedResourceIsUnchanged: a resource that the client marked as counted is not
// changed, whatever the value of its mark is.
func TestMark_CountedResourceIsUnchanged(t *testing.T) {
	spans := [][]otlptest.Span{{{Name: "x", ID: 1}}}
	theirs := otlptest.Resource{Attributes: []otlptest.Attribute{{otlp.StatsComputed, "yes"}}, Scopes: spans}
	r := decoded(otlptest.Request(theirs, otlptest.Resource{Scopes: spans}))
	r.Resources[0].IsCounted = true
	var s sampling.Sample
	if left := s.Select(r, nil, true); left.IsUnchanged {
		t.Fatal("nothing is marked")
	}
	got := s.AppendSelected(nil)
	if alone := otlptest.Request(theirs); !bytes.HasPrefix(got, alone) ||
		bytes.Count(got, []byte(goldenMark)) != 1 {
		t.Errorf("forwarded %q", got)
	}
}
