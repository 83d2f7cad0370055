package otel_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// TestKey_ByConvention has a span for each convention, with the current and the older
// attributes. Their names are in TestNames_ByConvention.
func TestKey_ByConvention(t *testing.T) {
	for name, test := range map[string]struct {
		span otlptest.Span
		want span.Key
	}{
		"a request over HTTP": {
			otlptest.Span{
				Name: "GET /carts/{id}", Kind: spantable.KindServer,
				Attributes: []otlptest.Attribute{
					{"http.request.method", "GET"},
					{"http.route", "/carts/{id}"},
					{"http.response.status_code", 200},
					{"url.path", "/carts/7"},
					{"server.address", "shop"},
				},
			},
			span.Key{
				Operation: "http.server.request", Type: "web", Kind: "server", TraceRoot: span.TraceRootTrue,
				HTTPStatus:   200,
				HTTPMethod:   "GET",
				HTTPEndpoint: "/carts/{id}",
			},
		},
		"one of before 2023": {
			otlptest.Span{
				Name: "GET /carts/{id}", Kind: spantable.KindServer, Parent: 9,
				Attributes: []otlptest.Attribute{
					{"http.method", "GET"},
					{"http.route", "/carts/{id}"},
					{"http.status_code", 200},
					{"net.host.name", "shop"},
					{"net.peer.name", "who calls"},
				},
			},
			span.Key{
				Operation: "http.server.request", Type: "web", Kind: "server", TraceRoot: span.TraceRootFalse,
				HTTPStatus:   200,
				HTTPMethod:   "GET",
				HTTPEndpoint: "/carts/{id}",
			},
		},
		"one that says both": {
			otlptest.Span{Name: "GET", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
				{"http.method", "OLD"},
				{"http.request.method", "GET"},
				{"http.status_code", 1},
				{"http.response.status_code", "404"},
				{"net.peer.name", "old"},
				{"server.address", "new"},
				{"net.host.name", "own"},
			}},
			span.Key{
				Operation: "http.client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue,
				HTTPStatus: 404, HTTPMethod: "GET", PeerTags: []string{"server.address:new"},
			},
		},
		"a query": {
			otlptest.Span{Name: "SELECT carts", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
				{"db.system.name", "postgresql"},
				{"db.namespace", "shop"},
				{"db.collection.name", "carts"},
				{"db.operation.name", "SELECT"},
				{"db.query.text", "SELECT 1"},
				{"server.address", "db"},
				{"peer.service", "carts-db"},
			}},
			span.Key{
				Operation: "postgresql.query", Type: "sql", Kind: "client", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{
					"db.collection.name:carts", "db.namespace:shop", "db.operation.name:SELECT",
					"db.system.name:postgresql",
					"peer.service:carts-db", "server.address:db",
				},
			},
		},
		"a query of before": {
			otlptest.Span{Name: "SELECT carts", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
				{"db.system", "Redis"},
				{"db.name", "shop"},
				{"db.sql.table", "carts"},
				{"db.operation", "GET"},
				{"net.peer.name", "db"},
			}},
			span.Key{
				Operation: "redis.query", Type: "db", Kind: "client", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{
					"db.collection.name:carts", "db.namespace:shop", "db.operation.name:GET",
					"db.system.name:Redis", "server.address:db",
				},
			},
		},
		"a message": {
			otlptest.Span{Name: "send orders", Kind: spantable.KindProducer, Attributes: []otlptest.Attribute{
				{"messaging.system", "kafka"},
				{"messaging.destination.name", "orders"},
				{"messaging.operation.name", "send"},
				{"messaging.operation.type", "publish"},
			}},
			span.Key{
				Operation: "kafka.publish", Type: "custom", Kind: "producer", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{
					"messaging.destination.name:orders", "messaging.operation.name:send",
					"messaging.operation.type:publish", "messaging.system:kafka",
				},
			},
		},
		"a message of before": {
			otlptest.Span{
				Name: "orders process", Kind: spantable.KindConsumer,
				Attributes: []otlptest.Attribute{
					{"messaging.system", "kafka"},
					{"messaging.destination", "orders"},
					{"messaging.operation", "process"},
				},
			},
			span.Key{
				Operation: "kafka.process", Type: "custom", Kind: "consumer", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{
					"messaging.destination.name:orders", "messaging.operation.type:process",
					"messaging.system:kafka",
				},
			},
		},
		"a call by gRPC": {
			otlptest.Span{
				Name: "shop.Carts/Get", Kind: spantable.KindServer,
				Attributes: []otlptest.Attribute{
					{"rpc.system", "grpc"},
					{"rpc.service", "shop.Carts"},
					{"rpc.method", "Get"},
					{"rpc.grpc.status_code", 5},
				},
			},
			span.Key{
				Operation:  "grpc.server.request",
				Type:       "web",
				Kind:       "server",
				TraceRoot:  span.TraceRootTrue,
				GRPCStatus: "5",
				PeerTags:   []string{"rpc.method:Get", "rpc.service:shop.Carts", "rpc.system.name:grpc"},
			},
		},
		"a call by gRPC with the names of 2026": {
			otlptest.Span{
				Name: "shop.Carts/Get", Kind: spantable.KindClient,
				Attributes: []otlptest.Attribute{
					{"rpc.system.name", "grpc"},
					{"rpc.method", "shop.Carts/Get"},
					{"rpc.response.status_code", "NOT_FOUND"},
				},
			},
			span.Key{
				Operation:  "grpc.client.request",
				Type:       "http",
				Kind:       "client",
				TraceRoot:  span.TraceRootTrue,
				GRPCStatus: "5",
				PeerTags:   []string{"rpc.method:shop.Carts/Get", "rpc.system.name:grpc"},
			},
		},
		"a call by something else, whose status is not gRPC's": {
			otlptest.Span{
				Name: "call", Kind: spantable.KindClient,
				Attributes: []otlptest.Attribute{
					{"rpc.system.name", "dubbo"},
					{"rpc.response.status_code", "5"},
				},
			},
			span.Key{
				Operation: "dubbo.client.request",
				Type:      "http",
				Kind:      "client",
				TraceRoot: span.TraceRootTrue,
				PeerTags:  []string{"rpc.system.name:dubbo"},
			},
		},
		"work inside": {
			otlptest.Span{Name: "sweep", Kind: spantable.KindInternal, Parent: 1},
			span.Key{Operation: "Internal", Type: "custom", Kind: "internal", TraceRoot: span.TraceRootFalse},
		},
		"a span without a kind, that went well": {
			otlptest.Span{Name: "sweep", Code: otlptest.OK},
			span.Key{
				Operation: "Internal", Type: "custom", Kind: "unspecified",
				TraceRoot: span.TraceRootTrue, AdditionalTags: []string{span.StatusOK},
			},
		},
		"values that are no text": {
			otlptest.Span{Name: "x", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
				{"db.namespace", 7},
				{"db.collection.name", true},
				{"db.operation.name", 1.5},
				{"http.response.status_code", 200.0},
				{"peer.service", otlptest.Field(nil, 5, nil)},
				{"server.address", ""},
			}},
			span.Key{
				Operation:  "client.request",
				Type:       "http",
				Kind:       "client",
				TraceRoot:  span.TraceRootTrue,
				HTTPStatus: 200,
				PeerTags:   []string{"db.collection.name:true", "db.namespace:7", "db.operation.name:1.5"},
			},
		},
		"an attribute twice, of which the first counts": {
			otlptest.Span{
				Name: "x", Kind: spantable.KindClient,
				Attributes: []otlptest.Attribute{{"peer.service", "a"}, {"peer.service", "b"}},
			},
			span.Key{
				Operation: "client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{"peer.service:a"},
			},
		},
		"statuses that are none": {
			otlptest.Span{
				Name: "x", Kind: spantable.KindClient,
				Attributes: []otlptest.Attribute{
					{"http.response.status_code", -1},
					{"rpc.grpc.status_code", "what"},
				},
			},
			span.Key{
				Operation: "client.request", Type: "http", Kind: "client",
				TraceRoot: span.TraceRootTrue,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := only(t, test.span, otel.NewPolicy(otel.Labels{KeepNames: true})).key
			test.want.Service, test.want.Resource = "shop", test.span.Name
			if got.PeerTags = append([]string(nil), got.PeerTags...); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, want\n%+v", got, test.want)
			}
		})
	}
}

// TestPeerTags_CallersOnly: by default clients, producers and consumers have peer tags. Callers
// control the address in a server's span, so a thousand values must make one key, unless the
// operator named the attribute.
func TestPeerTags_CallersOnly(t *testing.T) {
	policies := []*otel.Policy{
		standard(), otel.NewPolicy(otel.Labels{Attributes: []string{"server.address", "peer.service"}}),
	}
	for kind, want := range map[spantable.Kind][2]int{
		spantable.KindServer: {1, 1001}, spantable.KindInternal: {1, 1001}, spantable.KindUnspecified: {1, 1001},
		spantable.KindClient: {1001, 1001}, spantable.KindProducer: {1001, 1001},
		spantable.KindConsumer: {1001, 1001},
	} {
		for _, name := range []string{"server.address", "net.host.name", "net.peer.name", "peer.service"} {
			if isServer := kind == spantable.KindServer; name == "net.host.name" && !isServer ||
				name == "net.peer.name" && isServer {
				continue // the older attribute describes the other side of the call
			}
			var spans []otlptest.Span
			for i := range 1001 {
				spans = append(spans, otlptest.Span{Name: "GET /", Kind: kind, Attributes: []otlptest.Attribute{
					{"http.route", "/"}, {name, fmt.Sprintf("host-%d.example", i)},
				}})
			}
			for i, policy := range policies {
				keys := map[string]bool{}
				for _, s := range countedOf(t, otel.NewCounter(), otlptest.SDKRequest(spans...), policy) {
					keys[string(s.bytes)] = true
				}
				if len(keys) != want[i] {
					t.Errorf("%s of %s spans, named %v: %d keys, want %d", name, kind, i == 1, len(keys), want[i])
				}
			}
		}
	}
}

// TestOperation_AsInAgent covers the cases that TestKey_ByConvention leaves out.
func TestOperation_AsInAgent(t *testing.T) {
	for _, test := range []struct {
		want       string
		kind       spantable.Kind
		attributes []otlptest.Attribute
	}{
		{
			"aws.s3.request", spantable.KindClient,
			[]otlptest.Attribute{{"rpc.system", "aws-api"}, {"rpc.service", "S3"}},
		},
		{"aws.client.request", spantable.KindClient, []otlptest.Attribute{{"rpc.system", "aws-api"}}},
		{"aws-api.server.request", spantable.KindServer, []otlptest.Attribute{{"rpc.system", "aws-api"}}},
		{
			"aws.resize.invoke", spantable.KindClient,
			[]otlptest.Attribute{{"faas.invoked_provider", "aws"}, {"faas.invoked_name", "resize"}},
		},
		{"timer.invoke", spantable.KindServer, []otlptest.Attribute{{"faas.trigger", "timer"}}},
		{
			"graphql.server.request", spantable.KindServer,
			[]otlptest.Attribute{{"graphql.operation.type", "query"}},
		},
		{
			"amqp.server.request", spantable.KindServer,
			[]otlptest.Attribute{{"network.protocol.name", "amqp"}},
		},
		{"server.request", spantable.KindServer, nil},
		{"Producer", spantable.KindProducer, nil},
		{
			"Consumer", spantable.KindConsumer,
			[]otlptest.Attribute{
				{"db.system", "redis"},
				{"rpc.system", "grpc"},
				{"http.request.method", "GET"},
			},
		},
		{
			"Internal", spantable.KindInternal,
			[]otlptest.Attribute{{"messaging.system", "kafka"}, {"messaging.operation", "receive"}},
		},
	} {
		if got := only(t, otlptest.Span{Name: "x", Kind: test.kind, Attributes: test.attributes},
			standard()).key.Operation; got != test.want {
			t.Errorf("%v is called %q, want %q", test.attributes, got, test.want)
		}
	}
}

// TestTags_NamedByOperator checks that such a tag occurs once, under its own name.
func TestTags_NamedByOperator(t *testing.T) {
	policy := otel.NewPolicy(otel.Labels{Attributes: []string{
		"tenant", "db.system", "db.namespace",
		"http.route", "tenant",
	}})
	got := only(t,
		otlptest.Span{
			Name: "x", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"tenant", "a"}, {"db.system", "redis"}, {"http.route", "/"}},
		}, policy).key
	if want := []string{"db.system.name:redis", "tenant:a"}; !reflect.DeepEqual(got.PeerTags, want) {
		t.Errorf("%q, want %q", got.PeerTags, want)
	}
	tagsOf := func(s otlptest.Span, attrs ...otlptest.Attribute) []string {
		body := otlptest.Request(otlptest.Resource{
			Attributes: append(otlptest.SDK("shop"), attrs...),
			Scopes:     [][]otlptest.Span{{s}},
		})
		return countedOf(t, otel.NewCounter(), body,
			otel.NewPolicy(otel.Labels{Attributes: []string{
				"k8s.namespace.name",
				"host.name",
			}}))[0].key.PeerTags
	}
	if got := tagsOf(otlptest.Span{Name: "x"}, otlptest.Attribute{"k8s.namespace.name", "here"},
		otlptest.Attribute{"http.route", "/"}); !reflect.DeepEqual(got, []string{"k8s.namespace.name:here"}) {
		t.Errorf("of a resource: %q", got)
	}
	attrs := []otlptest.Attribute{{"k8s.namespace.name", "mine"}, {"host.name", "h"}}
	if got := tagsOf(otlptest.Span{Name: "x", Attributes: attrs},
		otlptest.Attribute{
			"k8s.namespace.name",
			"here",
		}); !reflect.DeepEqual(got, []string{"k8s.namespace.name:mine", "host.name:h"}) {
		t.Errorf("of a span before its resource: %q", got)
	}
	two := []otlptest.Resource{
		{Attributes: append(otlptest.SDK("shop"), otlptest.Attribute{"zone", "a"},
			otlptest.Attribute{"zone", "b"}), Scopes: [][]otlptest.Span{{{Name: "x"}}}},
		{
			Attributes: append(otlptest.SDK("shop"), otlptest.Attribute{"zone", "c"}),
			Scopes:     [][]otlptest.Span{{{Name: "x"}}},
		},
	}
	var tags []string
	for _, s := range countedOf(t, otel.NewCounter(), otlptest.Request(two...),
		otel.NewPolicy(otel.Labels{Attributes: []string{"zone"}})) {
		tags = append(tags, s.key.PeerTags...)
	}
	if !reflect.DeepEqual(tags, []string{"zone:a", "zone:c"}) {
		t.Errorf("of two resources: %q", tags)
	}
	many := make([]string, spantable.MaxLabels)
	for i := range many {
		many[i] = "x"
	}
	for _, wrong := range [][]string{{""}, {"a:b"}, many} {
		if (&otel.Labels{Attributes: wrong}).Check() == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
	if err := (&otel.Labels{Attributes: []string{"tenant", "a.b"}}).Check(); err != nil {
		t.Error(err)
	}
}

// TestResource_RepeatedAttribute: if a resource repeats an attribute, the first value
// counts for each span.
func TestResource_RepeatedAttribute(t *testing.T) {
	attrs := []otlptest.Attribute{{"service.name", "shop"}}
	for i := range 1000 {
		attrs = append(attrs, otlptest.Attribute{"zone", fmt.Sprint("zone-", i)},
			otlptest.Attribute{"tenant", i})
	}
	body := otlptest.Request(otlptest.Resource{Attributes: attrs, Scopes: [][]otlptest.Span{{{Name: "x"}}}})
	c := otel.NewCounter()
	counted := countedOf(t, c, body, otel.NewPolicy(otel.Labels{Attributes: []string{"zone", "tenant"}}))
	if got := fmt.Sprint(counted[0].key.PeerTags); got != "[zone:zone-0 tenant:0]" {
		t.Errorf("the tags are %s", got)
	}
	if res := c.Request().Resources[0]; res.TagEnd-res.TagStart != 3 {
		t.Errorf("each span looks at %d attributes", res.TagEnd-res.TagStart)
	}
}

// TestSpan_Facts: the end, the duration, whether the span failed, and whether it is top-level.
func TestSpan_Facts(t *testing.T) {
	for name, test := range map[string]struct {
		span     otlptest.Span
		end      int64
		duration uint64
		flags    span.Flags
	}{
		"a root": {otlptest.Span{Start: 3, End: 10}, 10, 7, span.TopLevel},
		"an inner one": {
			otlptest.Span{Start: 3, End: 3, Parent: 1, Kind: spantable.KindClient},
			3, 0, 0,
		},
		"an entry": {
			otlptest.Span{Start: 3, End: 4, Parent: 1, Kind: spantable.KindServer},
			4, 1, span.TopLevel,
		},
		"one that takes a message": {otlptest.Span{
			Start: 3, End: 4, Parent: 1,
			Kind: spantable.KindConsumer,
		}, 4, 1, span.TopLevel},
		"one that failed": {
			otlptest.Span{Start: 3, End: 4, Parent: 1, Code: otlptest.Error},
			4, 1,
			span.Error,
		},
		"one that ended before": {otlptest.Span{Start: 10, End: 3, Parent: 1}, 10, 0, 0},
		"one that ends in 10,000 a": {
			otlptest.Span{Start: 0, End: math.MaxUint64, Parent: 1},
			math.MaxInt64,
			math.MaxUint64, 0,
		},
	} {
		got := only(t, test.span, standard())
		if got.End != test.end || got.Duration != test.duration || got.Flags != test.flags ||
			got.Weight != 1 {
			t.Errorf("%s: %+v", name, got.Snapshot)
		}
	}
}
