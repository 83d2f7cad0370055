package otel_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// TestMetrics_AttributesBecomeTags lists the peer tags of spans without and with the metrics of the conventions.
func TestMetrics_AttributesBecomeTags(t *testing.T) {
	withMetrics := otel.NewPolicy(otel.Labels{Metrics: true, Attributes: []string{"error.type"}})
	for title, test := range map[string]struct {
		kind                  spantable.Kind
		attributes            []otlptest.Attribute
		tags, tagsWithMetrics string
	}{
		"an HTTP server": {
			spantable.KindServer,
			[]otlptest.Attribute{
				{"http.request.method", "GET"},
				{"url.scheme", "https"},
				{"server.port", 443},
				{"server.address", "any"},
				{"network.protocol.version", "1.1"},
				{"http.response.status_code", 200},
			},
			"", "network.protocol.version:1.1 url.scheme:https",
		},
		"an HTTP server with older attributes": {
			spantable.KindServer,
			[]otlptest.Attribute{
				{"http.method", "GET"}, {"http.scheme", "http"}, {"http.flavor", "1.1"}, {"net.host.port", 80},
			},
			"", "network.protocol.version:1.1 url.scheme:http",
		},
		"an HTTP client": {
			spantable.KindClient,
			[]otlptest.Attribute{
				{"http.method", "GET"}, {"net.peer.name", "pay"}, {"net.peer.port", 8080}, {"error.type", "timeout"},
			},
			"server.address:pay", "error.type:timeout server.address:pay server.port:8080",
		},
		"a gRPC client": {
			spantable.KindClient,
			[]otlptest.Attribute{
				{"rpc.system.name", "grpc"}, {"rpc.method", "a/B"}, {"rpc.response.status_code", "OK"},
			},
			"rpc.method:a/B rpc.system.name:grpc", "rpc.method:a/B rpc.system.name:grpc",
		},
		"another RPC client": {
			spantable.KindClient,
			[]otlptest.Attribute{
				{"rpc.system.name", "connectrpc"}, {"rpc.response.status_code", "not_found"},
			},
			"rpc.system.name:connectrpc", "rpc.response.status_code:not_found rpc.system.name:connectrpc",
		},
		"an RPC client with the attribute of newer conventions": {
			spantable.KindClient,
			[]otlptest.Attribute{{"rpc.system.name", "jsonrpc"}, {"rpc.status_code", "-32602"}},
			"rpc.system.name:jsonrpc", "rpc.response.status_code:-32602 rpc.system.name:jsonrpc",
		},
		"a model with an older attribute, in the process": {
			spantable.KindInternal,
			[]otlptest.Attribute{
				{"gen_ai.system", "vllm"}, {"gen_ai.operation.name", "chat"}, {"gen_ai.request.model", "small"},
			},
			"gen_ai.operation.name:chat gen_ai.provider.name:vllm gen_ai.request.model:small",
			"gen_ai.operation.name:chat gen_ai.provider.name:vllm gen_ai.request.model:small",
		},
		"work of the application": {
			spantable.KindInternal, []otlptest.Attribute{{"url.scheme", "http"}, {"server.port", 80}}, "", "",
		},
	} {
		s := otlptest.Span{Name: "x", Kind: test.kind, Attributes: test.attributes}
		for policy, want := range map[*otel.Policy]string{standard(): test.tags, withMetrics: test.tagsWithMetrics} {
			tags := only(t, s, policy).key.PeerTags
			slices.Sort(tags)
			if got := strings.Join(tags, " "); got != want {
				t.Errorf("%s has the tags %q, want %q", title, got, want)
			}
		}
	}
}

// TestMetrics_AttributeOfOperator checks that an attribute of a metric that an operator has also configured has the same
// value as without this: that of the present name or, if the span does not have it, of an older one.
func TestMetrics_AttributeOfOperator(t *testing.T) {
	policy := otel.NewPolicy(otel.Labels{Metrics: true, Attributes: []string{"server.port", "url.scheme"}})
	for title, attributes := range map[string][]otlptest.Attribute{
		"present names": {{"http.request.method", "GET"}, {"url.scheme", "http"}, {"server.port", 80}},
		"older names":   {{"http.method", "GET"}, {"url.scheme", "http"}, {"net.peer.port", 80}},
		"both":          {{"http.method", "GET"}, {"url.scheme", "http"}, {"net.peer.port", 81}, {"server.port", 80}},
	} {
		s := otlptest.Span{Name: "x", Kind: spantable.KindClient, Attributes: attributes}
		tags := only(t, s, policy).key.PeerTags
		slices.Sort(tags)
		if want := []string{"server.port:80", "url.scheme:http"}; !slices.Equal(tags, want) {
			t.Errorf("%s: the tags are %q, want %q", title, tags, want)
		}
	}
}

// TestMetrics_AttributesNotOfResource checks that spans do not inherit the attributes of metrics from their resource.
func TestMetrics_AttributesNotOfResource(t *testing.T) {
	body := otlptest.Request(otlptest.Resource{
		Attributes: append(otlptest.SDK("shop"), otlptest.Attribute{"url.scheme", "http"}),
		Scopes: [][]otlptest.Span{{{
			Name: "x", Kind: spantable.KindServer, Attributes: []otlptest.Attribute{{"http.request.method", "GET"}},
		}}},
	})
	policy := otel.NewPolicy(otel.Labels{Metrics: true, Resource: []string{"url.scheme"}})
	if tags := countedOf(t, otel.NewCounter(), body, policy)[0].key.PeerTags; len(tags) > 0 {
		t.Errorf("the span has the tags %q", tags)
	}
}
