package rules_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// The expected values are results of the agent's own code; test/agent/traces compares many more with it.
func TestRules_CountedSpans(t *testing.T) {
	number := func(key string,
		n float64,
	) rules.Maps {
		return rules.Maps{Metrics: map[string]float64{key: n}}
	}
	kind := func(kind string) rules.Maps { return rules.Maps{Meta: map[string]string{rules.TagKind: kind}} }
	for _, test := range []struct {
		name string
		tags rules.Maps
		want bool
	}{
		{"nothing", rules.Maps{}, false},
		{"top-level by the agent", number(rules.TagTopLevel, 1), true},
		{"top-level by its tracer", number(rules.TagTracerTopLevel, 1), true},
		{"not top-level", number(rules.TagTopLevel, 0), false},
		{"measured", number(rules.TagMeasured, 1), true},
		{"a server", kind("server"), true},
		{"a server in capitals", kind("SERVER"), true},
		{"internal", kind("internal"), false},
		{"partial", rules.Maps{
			Meta:    map[string]string{rules.TagKind: "client"},
			Metrics: map[string]float64{rules.TagPartialVersion: 0},
		}, false},
		{"partial no more", rules.Maps{
			Meta:    map[string]string{rules.TagKind: "client"},
			Metrics: map[string]float64{rules.TagPartialVersion: -1},
		}, true},
	} {
		if got := rules.Eligible(test.tags, rules.Kinds); got != test.want {
			t.Errorf("%s: counted %v", test.name, got)
		}
	}
	if rules.Eligible(kind("server"), nil) {
		t.Error("a kind is counted by an agent that counts none")
	}
}

func TestPeerTags_ByKind(t *testing.T) {
	meta := map[string]string{rules.TagBaseService: "shop", "peer.hostname": "10.0.0.1:5432", "db.name": ""}
	for kind, want := range map[string][]string{
		"client":   {rules.TagBaseService + ":shop", "peer.hostname:blocked-ip-address:5432"},
		"Consumer": {rules.TagBaseService + ":shop", "peer.hostname:blocked-ip-address:5432"},
		"internal": {rules.TagBaseService + ":shop"},
		"":         {rules.TagBaseService + ":shop"},
		"server":   nil,
		"other":    nil,
	} {
		meta[rules.TagKind] = kind
		if got := rules.PeerTags(nil, rules.Maps{Meta: meta},
			[]string{rules.TagBaseService, "db.name", "peer.hostname"}); !slices.Equal(got, want) {
			t.Errorf("kind %q: %q, want %q", kind, got, want)
		}
	}
}

func TestWeight(t *testing.T) {
	for rate, want := range map[float64]float64{0.25: 4, 1: 1, 0: 1, -1: 1, 2: 1} {
		metrics := map[string]float64{rules.TagSampleRate: rate}
		if got := rules.Weight(rules.Maps{Metrics: metrics}); got != want {
			t.Errorf("rate %v: weight %v, want %v", rate, got, want)
		}
	}
	if got := rules.Weight(rules.Maps{}); got != 1 {
		t.Errorf("no rate: weight %v", got)
	}
}

// The rules that are applied to every span allocate nothing.
func TestRulesAlloc(t *testing.T) {
	tags := rules.Maps{
		Meta: map[string]string{
			rules.TagKind: "server", "grpc.code": "StatusCode.NOT_FOUND",
			rules.TagHTTPStatus: "200",
		},
		Metrics: map[string]float64{rules.TagTopLevel: 1},
	}
	trace := make([]rules.Link, 50)
	for i := range trace {
		trace[i] = rules.Link{Span: uint64(i + 1), Parent: uint64(i), Service: "shop"}
	}
	var spans rules.Spans
	spans.Reset(trace)
	var shown rules.Tags = tags
	if n := testing.AllocsPerRun(100, func() {
		if !rules.Eligible(shown, rules.Kinds) || rules.HTTPStatus(shown) != 200 ||
			rules.GRPCStatus(shown) != "5" || rules.QuantizePeer("db.example.com") == "" {
			t.Error("a rule changed its mind")
		}
		spans.Reset(trace)
		if !spans.IsTopLevel(0) || spans.IsTopLevel(49) || spans.Root() != 0 {
			t.Error("a chain of one service has more than one top-level span")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExamplePeerTags() {
	tags := rules.Maps{Meta: map[string]string{"span.kind": "client", "out.host": "ip-10-0-0-7.internal"}}
	fmt.Println(rules.PeerTags(nil, tags, []string{"db.name", "out.host"}))
	// Output: [out.host:ip-blocked-ip-address.internal]
}
