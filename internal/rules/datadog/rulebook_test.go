package datadog_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// The model implements the rules of each tracer's source code on two maps, independent of the
// rulebooks. test/agent/tracers compares the rulebooks with the tracers themselves.

// modelSpan is a span as its tracer sees it.
type modelSpan struct {
	spanV04
	peers, additional []string // names of the wanted tags
}

func (s *modelSpan) tags() rules.Maps { return rules.Maps{Meta: s.Meta, Metrics: s.Metrics} }

func (s *modelSpan) any(name string) string {
	if n, ok := s.Metrics[name]; ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return s.Meta[name]
}

func (s *modelSpan) isMarked(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s.Metrics[name] == 1 })
}

// key returns the labels that are the same in all languages.
func (s *modelSpan) key() span.Key {
	k := span.Key{
		Service: s.Service, Operation: s.Name, Resource: s.Resource, Type: s.Type, Kind: s.Meta["span.kind"],
		ServiceSource: s.any("_dd.svc_src"),
		HTTPMethod:    s.Meta["http.method"],
		TraceRoot:     span.TraceRootFalse,
	}
	if s.ParentID == 0 {
		k.TraceRoot = span.TraceRootTrue
	}
	return k
}

func (s *modelSpan) textTags(names []string) (tags []string) {
	for _, name := range names {
		if value := s.Meta[name]; value != "" {
			tags = append(tags, name+":"+value)
		}
	}
	return tags
}

func goModel(s *modelSpan) (k span.Key, counts bool) {
	k = s.key()
	k.HTTPStatus, k.GRPCStatus, k.PeerTags = rules.HTTPStatus(s.tags()), rules.GRPCStatus(s.tags()), rules.PeerTags(nil, s.tags(), s.peers)
	k.HTTPEndpoint, k.AdditionalTags = s.Meta["http.endpoint"], s.textTags(s.additional[:min(6,
		len(s.additional))])
	k.Synthetics = strings.HasPrefix(s.Meta["_dd.origin"], "synthetics")
	return k, rules.Eligible(s.tags(), rules.Kinds)
}

func pythonModel(s *modelSpan) (k span.Key, counts bool) {
	k = s.key()
	if code, err := strconv.ParseUint(s.Meta["http.status_code"], 10, 32); err == nil {
		k.HTTPStatus = uint32(code)
	}
	if code, ok := s.Metrics["http.status_code"]; ok {
		k.HTTPStatus = uint32(code)
	}
	for _, name := range rules.GRPCStatusTags[:4] {
		if n, ok := s.Metrics[name]; ok && k.GRPCStatus == "" && n == math.Trunc(n) {
			k.GRPCStatus = fmt.Sprint(n)
		}
	}
	for _, name := range slices.Backward(rules.GRPCStatusTags[:4]) {
		if code := rules.ParseGRPCStatus(s.Meta[name]); code != "" {
			k.GRPCStatus = code
		}
	}
	base := s.Meta["_dd.base_service"]
	switch strings.ToLower(k.Kind) {
	case "client", "producer", "consumer":
		k.PeerTags = rules.PeerTags(nil, s.tags(), s.peers)
	default:
		if base != "" {
			k.PeerTags = []string{"_dd.base_service:" + base}
		}
	}
	endpoint, ok := s.Meta["http.endpoint"]
	if !ok {
		endpoint = s.Meta["http.route"]
	}
	k.HTTPEndpoint, k.AdditionalTags = endpoint, s.textTags(firstFour(s.additional))
	k.Synthetics = strings.HasPrefix(s.Meta["_dd.origin"], "synthetics")
	return k, rules.Eligible(s.tags(), rules.Kinds)
}

func nodeModel(s *modelSpan) (k span.Key, counts bool) {
	k = s.key()
	k.TraceRoot = span.TraceRootNotSet
	// This tracer sends every status as text.
	if code, err := strconv.ParseFloat(s.any("http.status_code"), 64); err == nil &&
		code == math.Trunc(code) {
		k.HTTPStatus = uint32(code)
	}
	for _, name := range []string{"grpc.status.code", "rpc.grpc.status_code", "rpc.response.status_code"} {
		if code := s.any(name); code != "" {
			k.GRPCStatus = rules.ParseGRPCStatus(code)
			break
		}
	}
	if k.HTTPEndpoint = s.Meta["http.route"]; k.HTTPEndpoint == "" {
		k.HTTPEndpoint = s.Meta["http.endpoint"]
	}
	k.Synthetics = s.Meta["_dd.origin"] == "synthetics"
	return k, s.isMarked("_dd.top_level", "_dd.measured")
}

func javaModel(renames bool) func(s *modelSpan) (k span.Key, counts bool) {
	return func(s *modelSpan) (k span.Key, counts bool) {
		k = s.key()
		k.HTTPMethod = ""
		if renames {
			k.HTTPMethod, k.HTTPEndpoint = s.Meta["http.method"], s.Meta["http.endpoint"]
		}
		if code, err := strconv.ParseUint(s.any("http.status_code"), 10, 32); err == nil {
			k.HTTPStatus = uint32(code)
		}
		if s.Type == "rpc" {
			k.GRPCStatus = s.any("rpc.grpc.status_code")
		}
		named := func(name string) string {
			value := s.any(name)
			switch {
			case value != "":
			case name == "db.system":
				value = s.any("db.type")
			case name == "server.address" && (k.Kind == "client" || k.Kind == "producer"):
				value = s.any("peer.hostname")
			case name == "server.address" && (k.Kind == "server" || k.Kind == "consumer"):
				value = s.any("http.hostname")
			}
			return value
		}
		add := func(to *[]string, names []string) {
			for _, name := range names {
				if value := named(name); value != "" {
					*to = append(*to, name+":"+value)
				}
			}
		}
		switch k.Kind {
		case "client", "producer", "consumer":
			add(&k.PeerTags, s.peers)
		case "internal":
			add(&k.PeerTags, []string{"_dd.base_service"})
		}
		add(&k.AdditionalTags, firstFour(s.additional))
		k.Synthetics = s.Meta["_dd.origin"] == "synthetics"
		isKind := slices.Contains(rules.Kinds, k.Kind)
		return k, s.Duration > 0 && (isKind || s.isMarked("_dd.top_level", "_dd.measured"))
	}
}

func firstFour(names []string) []string {
	names = slices.Sorted(slices.Values(names))
	return names[:min(4, len(names))]
}

// mainService returns the service in the tracer's payloads. s is the root of the trace.
func mainService(lang string, s *modelSpan) string {
	if base := s.Meta["_dd.base_service"]; base != "" && lang != "nodejs" {
		return base
	}
	if lang == "nodejs" {
		return ""
	}
	return s.Service
}

// randomModelSpan returns named with random names, and random tags that affect its labels.
func randomModelSpan(rnd *rand.Rand, id uint64, named modelSpan) modelSpan {
	pick := func(all ...string) string { return all[rnd.IntN(len(all))] }
	named.spanV04 = spanV04{
		Service:  pick("shop", "Stock Keeper", "cart"),
		Name:     pick("web.request", "rpc"),
		Resource: pick("GET /", "r", ""),
		Type:     pick("", "rpc", "web"),
		SpanID:   id,
		ParentID: id - 1,
		Start:    1e18,
		Duration: int64(rnd.IntN(3)),
		Meta:     map[string]string{},
		Metrics:  map[string]float64{},
	}
	tags := map[string][]string{
		"span.kind": {
			"server", "client", "internal", "producer", "consumer", "CLIENT", "Server", "batch",
			"",
		},
		"http.method":               {"GET", "POST", ""},
		"http.endpoint":             {"/a", "/b", ""},
		"http.route":                {"/a/{id}", "/c", ""},
		"http.status_code":          {"200", "503.0", "999", "none", "#404"},
		"http.response.status_code": {"201", "#500"},
		"rpc.grpc.status_code":      {"#5", "NOT_FOUND", "7"},
		"grpc.code":                 {"UNAVAILABLE", "#3", "what"},
		"rpc.grpc.status.code":      {"#9"},
		"grpc.status.code":          {"OK", "#14", "ABORTED"},
		"rpc.response.status_code":  {"1", "#2"},
		"rpc.system":                {"grpc", "thrift"},
		"_dd.svc_src":               {"m", "java-jdbc"},
		"_dd.base_service":          {"shop", "Shop Front"},
		"peer.service":              {"Stock Keeper", "db"},
		"out.host":                  {"10.1.2.3:5432", "db1", "#7"},
		"db.type":                   {"h2"},
		"peer.hostname":             {"10.0.0.1"},
		"http.hostname":             {"front"},
		"db.name":                   {"orders", "#5"},
		"tier":                      {"gold", "silver", "", "#1"},
		"region":                    {"eu", strings.Repeat("x", 200), strings.Repeat("y", 201)},
		"zone":                      {"a"},
		"cell":                      {"b"},
		"rack":                      {"#3"},
		"_dd.origin":                {"synthetics", "synthetics-browser", "lambda"},
		"_dd.measured":              {"#1"},
		"_dd.top_level":             {"#1", "#0"},
		"_sample_rate":              {"#0.5"},
	}
	for name, values := range tags {
		if rnd.IntN(3) == 0 {
			continue
		}
		value := values[rnd.IntN(len(values))]
		if number, ok := strings.CutPrefix(value, "#"); ok {
			named.Metrics[name], _ = strconv.ParseFloat(number, 64)
		} else {
			named.Meta[name] = value
		}
	}
	return named
}

// TestClientRules_AgainstModel: for random spans, each rulebook counts the same spans as the model,
// under the same labels and main service, independent of earlier bodies.
func TestClientRules_AgainstModel(t *testing.T) {
	asked := modelSpan{
		peers: []string{
			"_dd.base_service", "db.name", "db.system", "db.type", "out.host",
			"peer.hostname", "peer.service", "server.address",
		},
		additional: []string{"zone", "tier", "region", "db.system", "cell", "rack", "more"},
	}
	models := map[string]func(*modelSpan) (span.Key, bool){
		"go": goModel, "python": pythonModel,
		"nodejs": nodeModel,
	}
	rnd := rand.New(rand.NewPCG(21, 1))
	c := datadog.NewCounter()
	counted := map[string]int{}
	for _, renames := range []bool{false, true} {
		models["java"] = javaModel(renames)
		policy, ok := datadog.NewPolicy(asked.peers, rules.Kinds, []string{"^r$"},
			datadog.Labels{OfTracer: true, AdditionalTags: asked.additional, RenamesResources: renames})
		if !ok {
			t.Fatal("refused")
		}
		for range 200 {
			var trace []spanV04
			spans := make([]modelSpan, 1+rnd.IntN(6))
			for i := range spans {
				spans[i] = randomModelSpan(rnd, uint64(i+1), asked)
				trace = append(trace, spans[i].spanV04)
			}
			for lang, model := range models {
				want := modelKeys(lang, model, spans)
				if err := c.Count(decode.FormatV04, encode(t, []any{trace}), lang, false,
					policy); err != nil {
					t.Fatal(err)
				}
				got, main := countedKeys(t, c)
				if !slices.Equal(got, want) || len(want) > 0 && main != mainService(lang, &spans[0]) {
					t.Fatalf("%s: main service %q, %q\nwant %q\nof %+v", lang, main, got, want, trace)
				}
				counted[lang] += len(want)
			}
		}
	}
	for lang := range models {
		if counted[lang] < 100 {
			t.Errorf("%d spans of %s counted", counted[lang], lang)
		}
	}
}

// modelKeys returns the keys of the spans that a tracer would count, if the agent ignores traces
// whose resource is r.
func modelKeys(lang string, model func(*modelSpan) (span.Key, bool), spans []modelSpan) (keys []string) {
	if spans[0].Resource == "r" && (lang == "go" || lang == "python") {
		return nil
	}
	for i := range spans {
		if key, counts := model(&spans[i]); counts {
			key.Normalize("")
			keys = append(keys, string(wire.AppendKey(nil, &key)))
		}
	}
	return keys
}

// countedKeys returns the normalized keys of the only batch of a body, and its main service. Each
// span must have weight 1.
func countedKeys(t *testing.T, c *datadog.Counter) (keys []string, main string) {
	t.Helper()
	for _, s := range countedBy(t, c) {
		var k span.Key
		if err := wire.ReadKey(&k, []byte(s.key)); err != nil || s.Weight != 1 {
			t.Fatal(err, s.Weight)
		}
		k.Normalize("")
		keys, main = append(keys, string(wire.AppendKey(nil, &k))), s.base
	}
	return keys, main
}

// TestClientRules_TextIsNoMark: the agent accepts a mark such as _dd.measured as text, a tracer does not.
func TestClientRules_TextIsNoMark(t *testing.T) {
	for policy, want := range map[*datadog.Policy]int{policyOf(t): 1, tracersPolicy(t): 0} {
		c := datadog.NewCounter()
		s := spanV04{
			Service: "shop", Name: "web.request", SpanID: 7, ParentID: 9, Start: 1e18,
			Meta: map[string]string{"_dd.measured": "1"},
		}
		if err := c.Count(decode.FormatV04, encode(t, []any{[]any{s}}), "go", true, policy); err != nil {
			t.Fatal(err)
		}
		if n := countedSpans(t, c); n != want {
			t.Errorf("%d spans counted, want %d", n, want)
		}
	}
}

// TestClientRules_UnknownLanguage checks that the agent's labels apply to a language without a
// rulebook, and to every language if the policy does not request the labels of clients.
func TestClientRules_UnknownLanguage(t *testing.T) {
	tracers, ok := datadog.NewPolicy(agentPeerTags, rules.Kinds, nil,
		datadog.Labels{OfTracer: true, AdditionalTags: []string{"language"}})
	if !ok {
		t.Fatal("refused")
	}
	for _, c := range []struct {
		lang   string
		policy *datadog.Policy
	}{{"ruby", tracers}, {"", tracers}, {"go", policyOf(t)}, {"java", policyOf(t)}} {
		for _, f := range examples {
			want, got := datadog.NewCounter(), datadog.NewCounter()
			if err := want.Count(f.format, f.body(t, 40), "", true, policyOf(t)); err != nil {
				t.Fatal(err)
			}
			if err := got.Count(f.format, f.body(t, 40), c.lang, true, c.policy); err != nil {
				t.Fatal(err)
			}
			a, _ := countedKeys(t, want)
			if b, _ := countedKeys(t, got); !slices.Equal(a, b) || len(a) == 0 {
				t.Errorf("%s of %q: the agent's labels are not", f.name, c.lang)
			}
		}
	}
}

// policyWithout returns a policy with tracers' labels and without tags.
func policyWithout(t testing.TB) *datadog.Policy {
	t.Helper()
	p, ok := datadog.NewPolicy(nil, nil, nil, datadog.Labels{OfTracer: true})
	if !ok {
		t.Fatal("refused")
	}
	return p
}

// TestClientRules_TooManyTags: if the agent asks for the maximum number of tags, those that tracers
// add do not fit.
func TestClientRules_TooManyTags(t *testing.T) {
	var peers []string
	for i := range spantable.MaxLabels - policyWithout(t).Names().Len() {
		peers = append(peers, fmt.Sprint("peer.", i))
	}
	if _, ok := datadog.NewPolicy(peers, nil, nil, datadog.Labels{OfTracer: true}); !ok {
		t.Error("as many as there may be were refused")
	}
	if _, ok := datadog.NewPolicy(peers, nil, nil,
		datadog.Labels{OfTracer: true, AdditionalTags: []string{"region"}}); ok {
		t.Error("one more was accepted")
	}
}
