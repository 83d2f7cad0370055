package oteltraces

import (
	"math"
	"reflect"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestWhatASpanIsCountedAs has a span of each convention, by its present names and by those
// before.
func TestWhatASpanIsCountedAs(t *testing.T) {
	for name, test := range map[string]struct {
		span madeSpan
		want span.Key
	}{
		"a request over HTTP": {
			madeSpan{name: "GET /carts/{id}", kind: kindServer, attributes: []attribute{
				{"http.request.method", "GET"},
				{"http.route", "/carts/{id}"},
				{"http.response.status_code", 200},
				{"url.path", "/carts/7"},
				{"server.address", "shop"},
			}},
			span.Key{
				Operation: "http.server.request", Type: "web", Kind: "server", TraceRoot: span.TraceRootTrue,
				HTTPStatus: 200, HTTPMethod: "GET", HTTPEndpoint: "/carts/{id}", PeerTags: []string{"server.address:shop"},
			},
		},
		"one of before 2023": {
			madeSpan{name: "GET /carts/{id}", kind: kindServer, parent: 9, attributes: []attribute{
				{"http.method", "GET"}, {"http.route", "/carts/{id}"}, {"http.status_code", 200}, {"net.host.name", "shop"}, {"net.peer.name", "who calls"},
			}},
			span.Key{
				Operation: "http.server.request", Type: "web", Kind: "server", TraceRoot: span.TraceRootFalse,
				HTTPStatus: 200, HTTPMethod: "GET", HTTPEndpoint: "/carts/{id}", PeerTags: []string{"server.address:shop"},
			},
		},
		"one that says both": {
			madeSpan{name: "GET", kind: kindClient, attributes: []attribute{
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
			madeSpan{name: "SELECT carts", kind: kindClient, attributes: []attribute{
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
					"db.collection.name:carts", "db.namespace:shop", "db.operation.name:SELECT", "db.system.name:postgresql",
					"peer.service:carts-db", "server.address:db",
				},
			},
		},
		"a query of before": {
			madeSpan{name: "SELECT carts", kind: kindClient, attributes: []attribute{
				{"db.system", "Redis"}, {"db.name", "shop"}, {"db.sql.table", "carts"}, {"db.operation", "GET"}, {"net.peer.name", "db"},
			}},
			span.Key{
				Operation: "redis.query", Type: "db", Kind: "client", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{
					"db.collection.name:carts", "db.namespace:shop", "db.operation.name:GET", "db.system.name:Redis", "server.address:db",
				},
			},
		},
		"a message": {
			madeSpan{name: "send orders", kind: kindProducer, attributes: []attribute{
				{"messaging.system", "kafka"}, {"messaging.destination.name", "orders"}, {"messaging.operation.name", "send"}, {"messaging.operation.type", "publish"},
			}},
			span.Key{
				Operation: "kafka.publish", Type: "custom", Kind: "producer", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{
					"messaging.destination.name:orders", "messaging.operation.name:send", "messaging.operation.type:publish", "messaging.system:kafka",
				},
			},
		},
		"a message of before": {
			madeSpan{name: "orders process", kind: kindConsumer, attributes: []attribute{
				{"messaging.system", "kafka"}, {"messaging.destination", "orders"}, {"messaging.operation", "process"},
			}},
			span.Key{
				Operation: "kafka.process", Type: "custom", Kind: "consumer", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{"messaging.destination.name:orders", "messaging.operation.type:process", "messaging.system:kafka"},
			},
		},
		"a call by gRPC": {
			madeSpan{name: "shop.Carts/Get", kind: kindServer, attributes: []attribute{
				{"rpc.system", "grpc"}, {"rpc.service", "shop.Carts"}, {"rpc.method", "Get"}, {"rpc.grpc.status_code", 5},
			}},
			span.Key{
				Operation: "grpc.server.request", Type: "web", Kind: "server", TraceRoot: span.TraceRootTrue, GRPCStatus: "5",
				PeerTags: []string{"rpc.method:Get", "rpc.service:shop.Carts", "rpc.system.name:grpc"},
			},
		},
		"a call by gRPC with the names of 2026": {
			madeSpan{name: "shop.Carts/Get", kind: kindClient, attributes: []attribute{
				{"rpc.system.name", "grpc"}, {"rpc.method", "shop.Carts/Get"}, {"rpc.response.status_code", "NOT_FOUND"},
			}},
			span.Key{
				Operation: "grpc.client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue, GRPCStatus: "5",
				PeerTags: []string{"rpc.method:shop.Carts/Get", "rpc.system.name:grpc"},
			},
		},
		"a call by something else, whose status is not gRPC's": {
			madeSpan{name: "call", kind: kindClient, attributes: []attribute{{"rpc.system.name", "dubbo"}, {"rpc.response.status_code", "5"}}},
			span.Key{
				Operation: "dubbo.client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue,
				PeerTags: []string{"rpc.system.name:dubbo"},
			},
		},
		"work inside": {
			madeSpan{name: "sweep", kind: kindInternal, parent: 1},
			span.Key{Operation: "Internal", Type: "custom", Kind: "internal", TraceRoot: span.TraceRootFalse},
		},
		"a span without a kind, that went well": {
			madeSpan{name: "sweep", code: codeOK},
			span.Key{Operation: "Internal", Type: "custom", Kind: "unspecified", TraceRoot: span.TraceRootTrue, AdditionalTags: []string{span.StatusOK}},
		},
		"values that are no text": {
			madeSpan{name: "x", kind: kindClient, attributes: []attribute{
				{"db.namespace", 7},
				{"db.collection.name", true},
				{"db.operation.name", 1.5},
				{"http.response.status_code", 200.0},
				{"peer.service", submessage(nil, 5, nil)},
				{"server.address", ""},
			}},
			span.Key{
				Operation: "client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue, HTTPStatus: 200,
				PeerTags: []string{"db.collection.name:true", "db.namespace:7", "db.operation.name:1.5"},
			},
		},
		"an attribute twice, of which the first counts": {
			madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"peer.service", "a"}, {"peer.service", "b"}}},
			span.Key{Operation: "client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue, PeerTags: []string{"peer.service:a"}},
		},
		"statuses that are none": {
			madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"http.response.status_code", -1}, {"rpc.grpc.status_code", "what"}}},
			span.Key{Operation: "client.request", Type: "http", Kind: "client", TraceRoot: span.TraceRootTrue},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := only(t, test.span, standard()).key
			test.want.Service, test.want.Resource = "shop", test.span.name
			if got.PeerTags = append([]string(nil), got.PeerTags...); !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v, want\n%+v", got, test.want)
			}
		})
	}
}

// TestOperationsAreTheAgents: the cases that the test above leaves out.
func TestOperationsAreTheAgents(t *testing.T) {
	for _, test := range []struct {
		want       string
		kind       kind
		attributes []attribute
	}{
		{"aws.s3.request", kindClient, []attribute{{"rpc.system", "aws-api"}, {"rpc.service", "S3"}}},
		{"aws.client.request", kindClient, []attribute{{"rpc.system", "aws-api"}}},
		{"aws-api.server.request", kindServer, []attribute{{"rpc.system", "aws-api"}}},
		{"aws.resize.invoke", kindClient, []attribute{{"faas.invoked_provider", "aws"}, {"faas.invoked_name", "resize"}}},
		{"timer.invoke", kindServer, []attribute{{"faas.trigger", "timer"}}},
		{"graphql.server.request", kindServer, []attribute{{"graphql.operation.type", "query"}}},
		{"amqp.server.request", kindServer, []attribute{{"network.protocol.name", "amqp"}}},
		{"server.request", kindServer, nil},
		{"Producer", kindProducer, nil},
		{"Consumer", kindConsumer, []attribute{{"db.system", "redis"}, {"rpc.system", "grpc"}, {"http.request.method", "GET"}}},
		{"Internal", kindInternal, []attribute{{"messaging.system", "kafka"}, {"messaging.operation", "receive"}}},
	} {
		if got := only(t, madeSpan{name: "x", kind: test.kind, attributes: test.attributes}, standard()).key.Operation; got != test.want {
			t.Errorf("%v is called %q, want %q", test.attributes, got, test.want)
		}
	}
}

// TestWhatAnOperatorNamesBecomesATag, once, and under its own name.
func TestWhatAnOperatorNamesBecomesATag(t *testing.T) {
	policy := NewPolicy(Labels{Attributes: []string{"tenant", "db.system", "db.namespace", "http.route", "tenant"}})
	got := only(t, madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"tenant", "a"}, {"db.system", "redis"}, {"http.route", "/"}}}, policy).key
	if want := []string{"db.system.name:redis", "tenant:a", "http.route:/"}; !reflect.DeepEqual(got.PeerTags, want) {
		t.Errorf("%q, want %q", got.PeerTags, want)
	}
	of := func(s madeSpan, said ...attribute) []string {
		body := request(madeResource{append(sdkResource("shop"), said...), [][]madeSpan{{s}}})
		return countedOf(t, NewCounter(), body, NewPolicy(Labels{Attributes: []string{"k8s.namespace.name", "host.name"}}))[0].key.PeerTags
	}
	if got := of(madeSpan{name: "x"}, attribute{"k8s.namespace.name", "here"}, attribute{"http.route", "/"}); !reflect.DeepEqual(got, []string{"k8s.namespace.name:here"}) {
		t.Errorf("of a resource: %q", got)
	}
	said := []attribute{{"k8s.namespace.name", "mine"}, {"host.name", "h"}}
	if got := of(madeSpan{name: "x", attributes: said}, attribute{"k8s.namespace.name", "here"}); !reflect.DeepEqual(got, []string{"k8s.namespace.name:mine", "host.name:h"}) {
		t.Errorf("of a span before its resource: %q", got)
	}
	two := []madeResource{
		{append(sdkResource("shop"), attribute{"zone", "a"}, attribute{"zone", "b"}), [][]madeSpan{{{name: "x"}}}},
		{append(sdkResource("shop"), attribute{"zone", "c"}), [][]madeSpan{{{name: "x"}}}},
	}
	var tags []string
	for _, s := range countedOf(t, NewCounter(), request(two...), NewPolicy(Labels{Attributes: []string{"zone"}})) {
		tags = append(tags, s.key.PeerTags...)
	}
	if !reflect.DeepEqual(tags, []string{"zone:a", "zone:c"}) {
		t.Errorf("of two resources: %q", tags)
	}
	many := make([]string, maxLabels)
	for i := range many {
		many[i] = "x"
	}
	for _, wrong := range [][]string{{""}, {"a:b"}, many} {
		if (&Labels{wrong}).Check() == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
	if err := (&Labels{[]string{"tenant", "a.b"}}).Check(); err != nil {
		t.Error(err)
	}
}

// TestFactsOfASpan: when it ended, how long it took, whether it failed, and where its trace
// entered a service.
func TestFactsOfASpan(t *testing.T) {
	for name, test := range map[string]struct {
		span     madeSpan
		end      int64
		duration uint64
		flags    span.Flags
	}{
		"a root":                    {madeSpan{start: 3, end: 10}, 10, 7, span.TopLevel},
		"an inner one":              {madeSpan{start: 3, end: 3, parent: 1, kind: kindClient}, 3, 0, 0},
		"an entry":                  {madeSpan{start: 3, end: 4, parent: 1, kind: kindServer}, 4, 1, span.TopLevel},
		"one that takes a message":  {madeSpan{start: 3, end: 4, parent: 1, kind: kindConsumer}, 4, 1, span.TopLevel},
		"one that failed":           {madeSpan{start: 3, end: 4, parent: 1, code: codeError}, 4, 1, span.Error},
		"one that ended before":     {madeSpan{start: 10, end: 3, parent: 1}, 3, 0, 0},
		"one that ends in 10,000 a": {madeSpan{start: 0, end: math.MaxUint64, parent: 1}, math.MaxInt64, math.MaxUint64, 0},
	} {
		got := only(t, test.span, standard())
		if got.End != test.end || got.Duration != test.duration || got.Flags != test.flags || got.Weight != 1 {
			t.Errorf("%s: %+v", name, got.Snapshot)
		}
	}
}
