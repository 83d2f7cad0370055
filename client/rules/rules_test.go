package rules

import (
	"fmt"
	"slices"
	"testing"
)

// The agent's own code gave these; test/agent/traces compares many more with it.
func TestWhatIsCounted(t *testing.T) {
	number := func(key string, n float64) Maps { return Maps{Metrics: map[string]float64{key: n}} }
	kind := func(kind string) Maps { return Maps{Meta: map[string]string{TagKind: kind}} }
	for _, test := range []struct {
		name string
		tags Maps
		want bool
	}{
		{"nothing", Maps{}, false},
		{"top-level by the agent", number(TagTopLevel, 1), true},
		{"top-level by its tracer", number(TagTracerTopLevel, 1), true},
		{"not top-level", number(TagTopLevel, 0), false},
		{"measured", number(TagMeasured, 1), true},
		{"a server", kind("server"), true},
		{"a server in capitals", kind("SERVER"), true},
		{"internal", kind("internal"), false},
		{"partial", Maps{Meta: map[string]string{TagKind: "client"}, Metrics: map[string]float64{TagPartialVersion: 0}}, false},
		{"partial no more", Maps{Meta: map[string]string{TagKind: "client"}, Metrics: map[string]float64{TagPartialVersion: -1}}, true},
	} {
		if got := Eligible(test.tags, Kinds); got != test.want {
			t.Errorf("%s: counted %v", test.name, got)
		}
	}
	if Eligible(kind("server"), nil) {
		t.Error("a kind is counted by an agent that counts none")
	}
}

func TestPeerTagsByKind(t *testing.T) {
	meta := map[string]string{TagBaseService: "shop", "peer.hostname": "10.0.0.1:5432", "db.name": ""}
	for kind, want := range map[string][]string{
		"client":   {TagBaseService + ":shop", "peer.hostname:blocked-ip-address:5432"},
		"Consumer": {TagBaseService + ":shop", "peer.hostname:blocked-ip-address:5432"},
		"internal": {TagBaseService + ":shop"},
		"":         {TagBaseService + ":shop"},
		"server":   nil,
		"other":    nil,
	} {
		meta[TagKind] = kind
		if got := PeerTags(nil, Maps{Meta: meta}, []string{TagBaseService, "db.name", "peer.hostname"}); !slices.Equal(got, want) {
			t.Errorf("kind %q: %q, want %q", kind, got, want)
		}
	}
}

func TestWeight(t *testing.T) {
	for rate, want := range map[float64]float64{0.25: 4, 1: 1, 0: 1, -1: 1, 2: 1} {
		if got := Weight(Maps{Metrics: map[string]float64{TagSampleRate: rate}}); got != want {
			t.Errorf("rate %v: weight %v, want %v", rate, got, want)
		}
	}
	if got := Weight(Maps{}); got != 1 {
		t.Errorf("no rate: weight %v", got)
	}
}

// TestRulesAlloc: what is asked of every span allocates nothing.
func TestRulesAlloc(t *testing.T) {
	tags := Maps{
		Meta:    map[string]string{TagKind: "server", "grpc.code": "StatusCode.NOT_FOUND", TagHTTPStatus: "200"},
		Metrics: map[string]float64{TagTopLevel: 1},
	}
	trace := make([]Link, 50)
	for i := range trace {
		trace[i] = Link{Span: uint64(i + 1), Parent: uint64(i), Service: "shop"}
	}
	var spans Spans
	spans.Reset(trace)
	var shown Tags = tags
	if n := testing.AllocsPerRun(100, func() {
		if !Eligible(shown, Kinds) || HTTPStatus(shown) != 200 || GRPCStatus(shown) != "5" || QuantizePeer("db.example.com") == "" {
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
	tags := Maps{Meta: map[string]string{"span.kind": "client", "out.host": "ip-10-0-0-7.internal"}}
	fmt.Println(PeerTags(nil, tags, []string{"db.name", "out.host"}))
	// Output: [out.host:ip-blocked-ip-address.internal]
}
