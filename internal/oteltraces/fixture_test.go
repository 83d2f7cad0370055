package oteltraces

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"google.golang.org/protobuf/encoding/protowire"
)

// attribute is a name and a string, an int, a float64 or a bool.
type attribute struct {
	name  string
	value any
}

// madeSpan is a span that tests make.
type madeSpan struct {
	trace      uint64 // the last eight bytes of its id
	id, parent uint64
	state      string
	name       string
	kind       kind
	start, end uint64
	attributes []attribute
	code       int
	more       []byte // fields behind its own
}

// madeResource is what sent spans.
type madeResource struct {
	attributes []attribute
	scopes     [][]madeSpan
}

func submessage(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

func (a attribute) encode() []byte {
	var value []byte
	switch v := a.value.(type) {
	case string:
		value = submessage(nil, 1, []byte(v))
	case bool:
		value = protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), protowire.EncodeBool(v))
	case int:
		value = protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(v))
	case float64:
		value = protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(v))
	case []byte: // a value that is written already
		value = v
	}
	return submessage(submessage(nil, 1, []byte(a.name)), 2, value)
}

func (s madeSpan) encode() (b []byte) {
	b = submessage(b, 1, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, 0x0123456789abcdef), s.trace))
	b = submessage(b, 2, binary.BigEndian.AppendUint64(nil, s.id))
	if s.state != "" {
		b = submessage(b, 3, []byte(s.state))
	}
	if s.parent != 0 {
		b = submessage(b, 4, binary.BigEndian.AppendUint64(nil, s.parent))
	}
	b = submessage(b, 5, []byte(s.name))
	b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), uint64(s.kind))
	b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), s.start)
	b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type), s.end)
	for _, a := range s.attributes {
		b = submessage(b, 9, a.encode())
	}
	if s.code >= 0 {
		b = submessage(b, 15, protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(s.code)))
	}
	b = protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), 0x101)
	return append(b, s.more...)
}

// request is the body of a request.
func request(resources ...madeResource) (body []byte) {
	for _, r := range resources {
		var said []byte
		for _, a := range r.attributes {
			said = submessage(said, 1, a.encode())
		}
		content := submessage(nil, 1, said)
		for _, spans := range r.scopes {
			scope := submessage(nil, 1, submessage(nil, 1, []byte("io.opentelemetry.tomcat-10.0")))
			for _, s := range spans {
				scope = submessage(scope, 2, s.encode())
			}
			content = submessage(content, 2, submessage(scope, 3, []byte("https://opentelemetry.io/schemas/1.37.0")))
		}
		body = submessage(body, 1, content)
	}
	return body
}

// sdkResource is what an SDK says of its process.
func sdkResource(service string) []attribute {
	return []attribute{
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

const began = uint64(1_790_000_000_000_000_000)

// webRequest is what the Java agent makes of requests to a web application, as it makes it:
// of each a span of the server, one inside, a call by HTTP and one to a database.
func webRequest(traces int) []byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	var servers, inner, clients, databases []madeSpan
	for i := range traces {
		trace, route := rnd.Uint64(), fmt.Sprint("/carts/{id}/items/", i%16)
		at := began + uint64(i)*1e6
		servers = append(servers, madeSpan{
			trace: trace, id: 1, name: "GET " + route, kind: kindServer, start: at, end: at + 20e6 + uint64(i), attributes: []attribute{
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
				{"user_agent.original", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"},
				{"url.scheme", "https"},
				{"thread.id", 42},
				{"thread.name", "http-nio-8080-exec-7"},
			},
		})
		inner = append(inner, madeSpan{
			trace: trace, id: 2, parent: 1, name: "CartController.items", kind: kindInternal, start: at + 1e6, end: at + 19e6,
			attributes: []attribute{{"code.function.name", "com.example.shop.CartController.items"}, {"thread.id", 42}, {"thread.name", "http-nio-8080-exec-7"}},
		})
		clients = append(clients, madeSpan{
			trace: trace, id: 3, parent: 2, name: "GET", kind: kindClient, start: at + 2e6, end: at + 9e6, attributes: []attribute{
				{"http.request.method", "GET"},
				{"url.full", fmt.Sprint("https://prices.example.com/v2/prices?item=", rnd.IntN(1e6))},
				{"server.address", "prices.example.com"},
				{"server.port", 443},
				{"http.response.status_code", 200},
				{"network.protocol.version", "1.1"},
				{"thread.id", 42},
				{"thread.name", "http-nio-8080-exec-7"},
			},
		})
		databases = append(databases, madeSpan{
			trace: trace, id: 4, parent: 2, name: "SELECT shop.carts", kind: kindClient, start: at + 10e6, end: at + 12e6, attributes: []attribute{
				{"db.system.name", "postgresql"},
				{"db.namespace", "shop"},
				{"db.operation.name", "SELECT"},
				{"db.collection.name", "carts"},
				{"db.query.text", "SELECT id, item, amount, price FROM carts WHERE id = ? ORDER BY added LIMIT ?"},
				{"server.address", "db.example.com"},
				{"server.port", 5432},
				{"thread.id", 42},
				{"thread.name", "http-nio-8080-exec-7"},
			},
		})
	}
	return request(madeResource{sdkResource("shop"), [][]madeSpan{servers, inner, clients, databases}})
}

// counted is a snapshot with its key, and who sent it.
type counted struct {
	origin span.Origin
	key    span.Key
	wire.Snapshot
}

// countedOf are the spans that a counter makes of a body.
func countedOf(t testing.TB, c *Counter, body []byte, policy *Policy) (all []counted) {
	t.Helper()
	if err := c.Count(body, policy); err != nil {
		t.Fatal(err)
	}
	for origin, message := range c.Batches {
		w, err := wire.WalkSpans(message)
		if err != nil {
			t.Fatal(err)
		}
		for s := (counted{origin: origin}); w.Next(&s.Snapshot); s.key = (span.Key{}) {
			if err := wire.ReadKey(&s.key, s.Key); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
	}
	return all
}

// only is the one span of a request with it alone.
func only(t testing.TB, s madeSpan, policy *Policy) counted {
	t.Helper()
	all := countedOf(t, NewCounter(), request(madeResource{sdkResource("shop"), [][]madeSpan{{s}}}), policy)
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	return all[0]
}

func standard() *Policy { return NewPolicy(Labels{}) }

// leftOf appends what goes on of the body that was walked last, or is that body where all of it does.
func leftOf(w *walked, dst []byte, k *Keeping) (left []byte, kept, gone Tally) {
	found := w.Measure(k, false)
	if found.IsWhole {
		return w.payload.body, found.Kept, found.Gone
	}
	if left = w.AppendLeft(dst); len(left)-len(dst) != found.Size {
		panic(fmt.Sprintf("%d bytes were measured, %d written", found.Size, len(left)-len(dst)))
	}
	return left, found.Kept, found.Gone
}
