package otlptest

import (
	"fmt"
	"math/rand/v2"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// SDK returns the resource attributes that an SDK sends for a service.
func SDK(service string) []Attribute {
	return []Attribute{
		{"service.name", service},
		{"service.version", "1.4.2"},
		{"service.instance.id", "6ad3f3ae-7d1c-4d1b-8e9d-3a0a5fd0a1f2"},
		{"deployment.environment.name", "prod"},
		{"host.name", "shop-5d9c7b8f4-x2x7q"},
		{"host.arch", "amd64"},
		{"os.type", "linux"},
		{"process.pid", 1},
		{"process.command_args", "/usr/bin/java -jar /app/shop.jar"},
		{"process.runtime.name", "OpenJDK Runtime Environment"},
		{"process.runtime.version", "21.0.4+7"},
		{"telemetry.sdk.language", "java"},
		{"telemetry.sdk.name", "opentelemetry"},
		{"telemetry.sdk.version", "1.52.0"},
		{"container.id", "8f1d2c3b4a5968778695a4b3c2d1e0f8f1d2c3b4a5968778695a4b3c2d1e0f8"},
	}
}

// StartTime is the start of the first span of Web.
const StartTime = uint64(1_790_000_000_000_000_000)

const userAgent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " +
	"Chrome/126.0.0.0 Safari/537.36"

// thread contains the attributes that the Java agent adds to each span.
var thread = [2]Attribute{{"thread.id", 42}, {"thread.name", "http-nio-8080-exec-7"}}

// Web returns a request like that of the Java agent in a web application. Each trace has a server span, an
// internal span, an HTTP client span and a database client span.
func Web(traces int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var servers, inner, clients, databases []Span
	for i := range traces {
		trace, route := rnd.Uint64(), fmt.Sprint("/carts/{id}/items/", i%16)
		at := StartTime + uint64(i)*1e6
		servers = append(servers, Span{
			Trace: trace, ID: 1, Name: "GET " + route, Kind: spantable.KindServer,
			Start: at, End: at + 20e6 + uint64(i),
			Attributes: []Attribute{
				{"network.peer.address", "10.2.3.4"},
				{"server.address", "shop.example.com"},
				{"client.address", "10.9.8.7"},
				{"url.path", fmt.Sprint("/carts/", rnd.IntN(1e6), "/items")},
				{"http.request.method", "GET"},
				{"http.route", route},
				{"http.response.status_code", 200},
				{"server.port", 443},
				{"network.peer.port", 51234},
				{"network.protocol.version", "1.1"},
				{"user_agent.original", userAgent},
				{"url.scheme", "https"},
				thread[0], thread[1],
			},
		})
		inner = append(inner, Span{
			Trace: trace, ID: 2, Parent: 1, Name: "CartController.items", Kind: spantable.KindInternal,
			Start: at + 1e6, End: at + 19e6,
			Attributes: []Attribute{{"code.function.name", "CartController.items"}, thread[0], thread[1]},
		})
		clients = append(clients, Span{
			Trace: trace, ID: 3, Parent: 2, Name: "GET", Kind: spantable.KindClient,
			Start: at + 2e6, End: at + 9e6,
			Attributes: []Attribute{
				{"http.request.method", "GET"},
				{"url.full", fmt.Sprint("https://prices.example.com/v2/prices?item=", rnd.IntN(1e6))},
				{"server.address", "prices.example.com"},
				{"server.port", 443},
				{"http.response.status_code", 200},
				{"network.protocol.version", "1.1"},
				thread[0], thread[1],
			},
		})
		databases = append(databases, Span{
			Trace: trace, ID: 4, Parent: 2, Name: "SELECT shop.carts", Kind: spantable.KindClient,
			Start: at + 10e6, End: at + 12e6, Attributes: []Attribute{
				{"db.system.name", "postgresql"},
				{"db.namespace", "shop"},
				{"db.operation.name", "SELECT"},
				{"db.collection.name", "carts"},
				{"db.query.text", "SELECT id, item, price FROM carts WHERE id = ? ORDER BY added LIMIT ?"},
				{"server.address", "db.example.com"},
				{"server.port", 5432},
				thread[0], thread[1],
			},
		})
	}
	return Request(Resource{SDK("shop"), [][]Span{servers, inner, clients, databases}})
}

// SDKRequest returns a request with one resource, whose attributes are those of an SDK.
func SDKRequest(spans ...Span) []byte { return Request(Resource{SDK("shop"), [][]Span{spans}}) }
