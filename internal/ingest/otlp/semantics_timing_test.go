package otlp

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
)

// attribute appends a string attribute of a span or a resource.
func attribute(b []byte, field protowire.Number, name, value string) []byte {
	return nested(b, field, nested(nested(nil, 1, []byte(name)), 2, nested(nil, 1, []byte(value))))
}

// shapes are the spans of a trace of a web application.
var shapes = []struct {
	kind       uint64
	name       string
	attributes []string
}{
	{2, "GET /carts/{id}/items", []string{
		"network.peer.address", "10.2.3.4", "server.address", "shop.example.com", "client.address",
		"10.9.8.7", "url.path", "/carts/8/items", "http.request.method", "GET",
		"http.route", "/carts/{id}/items", "network.protocol.version", "1.1", "user_agent.original",
		"Mozilla/5.0 (X11; Linux x86_64) Chrome/126.0.0.0 Safari/537.36", "url.scheme", "https",
		"thread.name", "http-nio-8080-exec-7",
	}},
	{
		1, "CartController.items",
		[]string{
			"code.function.name", "com.example.shop.CartController.items", "thread.name",
			"http-nio-8080-exec-7",
		},
	},
	{3, "GET", []string{
		"http.request.method", "GET", "url.full", "https://prices.example.com/v2/prices?item=7",
		"server.address", "prices.example.com", "network.protocol.version", "1.1",
		"thread.name", "http-nio-8080-exec-7",
	}},
	{3, "SELECT shop.carts", []string{
		"db.system.name", "postgresql", "db.namespace", "shop", "db.operation.name", "SELECT",
		"db.collection.name", "carts",
		"db.query.text", "SELECT id, item, amount FROM carts WHERE id = ? ORDER BY added LIMIT ?",
		"server.address", "db.example.com", "thread.name", "http-nio-8080-exec-7",
	}},
}

// webRequest returns a request with traces of four spans each.
func webRequest(traces int) []byte {
	scope, now := []byte(nil), uint64(time.Now().UnixNano())
	for i := range 4 * traces {
		shape, trace := shapes[i%4], protowire.AppendFixed64(nil, uint64(i/4+1)*0x9e3779b97f4a7c15)
		s := nested(nested(nil, 1, append(make([]byte, 8), trace...)), 2,
			protowire.AppendFixed64(nil, uint64(i+1)))
		if i%4 != 0 {
			s = nested(s, 4, protowire.AppendFixed64(nil, uint64(i/4*4+1)))
		}
		s = nested(s, 5, []byte(shape.name))
		s = protowire.AppendVarint(protowire.AppendTag(s, 6, protowire.VarintType), shape.kind)
		s = number(number(s, 7, now-1e6), 8, now+uint64(i))
		for j := 0; j < len(shape.attributes); j += 2 {
			s = attribute(s, 9, shape.attributes[j], shape.attributes[j+1])
		}
		scope = nested(scope, 2, s)
	}
	resource := attribute(attribute(nil, 1, "service.name", "shop"), 1, "deployment.environment.name", "prod")
	resource = attribute(attribute(resource, 1, "telemetry.sdk.language", "java"), 1, "telemetry.sdk.version",
		"1.52.0")
	return nested(nil, 1, nested(nested(nil, 1, resource), 2, scope))
}

// BenchmarkRead measures the time per span from a message to batches, for each semantics, and the additional time to
// mark a request as counted.
func BenchmarkRead(b *testing.B) {
	cpuTime := func() time.Duration {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			b.Fatal(err)
		}
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	const traces = 128
	for _, semantics := range []Semantics{SemanticsOTel, SemanticsDatadog} {
		for _, marks := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/marks=%v", semantics, marks), func(b *testing.B) {
				s := &Server{
					config: Config{
						Semantics: semantics,
						Config:    receiver.Config{Features: agentsWishes().features},
					},
					policy: otel.NewPolicy(otel.Labels{}),
				}
				s.loadFeatures()
				w, body, left := &workspace{reader: s.newReader()}, webRequest(traces), []byte(nil)
				r := w.reader
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					if result, err := r.read(body, false); result != ResultCounted {
						b.Fatal(result, err)
					}
					if marks {
						w.sample.Select(r.Request(), nil, true)
						left = w.sample.AppendSelected(left[:0])
					}
					w.release()
				}
				b.ReportMetric(float64(cpuTime()-before)/float64(4*traces*b.N), "cpu-ns/span")
			})
		}
	}
}

// agentsWishes returns the default features of an agent, as far as they matter for shapes.
func agentsWishes() *wishes {
	w := newWishes()
	w.now.SpanKinds = []string{"server", "client", "producer", "consumer"}
	w.now.PeerTags = []string{
		"_dd.base_service", "db.hostname", "db.instance", "db.name", "db.namespace", "db.system", "db.type",
		"dns.hostname", "grpc.host", "hostname", "http.host", "http.server_name",
		"messaging.destination", "messaging.destination.name", "messaging.system", "net.peer.name",
		"network.destination.ip", "network.destination.name", "out.host",
		"peer.hostname", "peer.service", "rpc.service", "rpc.system", "server.address", "tablename",
		"topicname",
	}
	return w
}
