package oteltraces

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

var update = flag.Bool("update", false, "rewrite testdata/labels.json from the spans in this package's tests")

// vectorsFile is read by whoever makes the same labels in a traced process: the client for
// OpenTelemetry's Java agent does.
const vectorsFile = "testdata/labels.json"

// vector is a span, and the key that it is counted under.
type vector struct {
	Name       string         `json:"name"`
	Service    string         `json:"service"` // of the resource
	Span       string         `json:"span"`    // its name
	Kind       string         `json:"kind"`
	IsRoot     bool           `json:"root"`
	Status     string         `json:"status"`
	Attributes [][3]string    `json:"attributes"` // name, type, and value as text; what comes twice counts as it comes first
	Labels     map[string]any `json:"labels"`
	Key        string         `json:"key"` // the labels' bytes, in hex
	Flags      span.Flags     `json:"flags"`
}

// labelsOf are the labels that are set, by the names of docs/protocol.md.
func labelsOf(k *span.Key) map[string]any {
	labels := map[string]any{"trace_root": k.TraceRoot == span.TraceRootTrue}
	for name, text := range map[string]string{
		"service": k.Service, "operation": k.Operation, "resource": k.Resource, "type": k.Type, "kind": k.Kind,
		"http_method": k.HTTPMethod, "http_endpoint": k.HTTPEndpoint, "grpc_status": k.GRPCStatus,
	} {
		if text != "" {
			labels[name] = text
		}
	}
	if k.HTTPStatus != 0 {
		labels["http_status"] = k.HTTPStatus
	}
	for name, tags := range map[string][]string{"peer_tags": k.PeerTags, "additional_tags": k.AdditionalTags} {
		if len(tags) != 0 {
			labels[name] = tags
		}
	}
	return labels
}

var statusNames = [...]string{"unset", codeOK: "ok", codeError: "error"}

// vectorOf is what a counter makes of a span.
func vectorOf(t *testing.T, name, service string, s madeSpan) vector {
	t.Helper()
	got := countedOf(t, NewCounter(), request(madeResource{[]attribute{{"service.name", service}}, [][]madeSpan{{s}}}), standard())[0]
	v := vector{
		Name: name, Service: service, Span: s.name, Kind: kindNames[s.kind], IsRoot: s.parent == 0, Status: statusNames[s.code],
		Attributes: [][3]string{}, Key: hex.EncodeToString(got.Key), Flags: got.Flags,
	}
	for _, a := range s.attributes {
		v.Attributes = append(v.Attributes, a.written())
	}
	v.Labels = labelsOf(&got.key)
	return v
}

// written is the attribute as it stands in the file. Of a list there are no elements: no label is made
// of it.
func (a attribute) written() [3]string {
	switch v := a.value.(type) {
	case bool:
		return [3]string{a.name, "bool", strconv.FormatBool(v)}
	case int:
		return [3]string{a.name, "int", strconv.Itoa(v)}
	case float64:
		return [3]string{a.name, "double", strconv.FormatFloat(v, 'g', -1, 64)}
	case []byte:
		return [3]string{a.name, "list", ""}
	}
	return [3]string{a.name, "string", a.value.(string)}
}

// vectorSpans are spans of each convention and what is odd about values, by names that say so.
var vectorSpans = []struct {
	name string
	span madeSpan
}{
	{"request", madeSpan{name: "GET /carts/{id}", kind: kindServer, attributes: []attribute{
		{"http.request.method", "GET"}, {"http.route", "/carts/{id}"}, {"url.path", "/carts/7"}, {"http.response.status_code", 200}, {"server.address", "shop"},
	}}},
	{"request of before 2023", madeSpan{name: "GET /carts/{id}", kind: kindServer, parent: 9, attributes: []attribute{
		{"http.method", "GET"}, {"http.route", "/carts/{id}"}, {"http.status_code", 200}, {"net.host.name", "shop"}, {"net.peer.name", "caller"},
	}}},
	{"present names before older ones", madeSpan{name: "GET", kind: kindClient, attributes: []attribute{
		{"http.method", "OLD"},
		{"http.request.method", "GET"},
		{"http.status_code", 1},
		{"http.response.status_code", "404"},
		{"net.peer.name", "old"},
		{"server.address", "new"},
		{"db.system", "old"},
		{"rpc.system", "old"},
		{"rpc.system.name", "new"},
	}}},
	{"present name that is empty", madeSpan{name: "GET", kind: kindClient, attributes: []attribute{{"http.request.method", ""}, {"http.method", "GET"}, {"server.address", ""}, {"net.peer.name", "x"}}}},
	{"query", madeSpan{name: "SELECT carts", kind: kindClient, parent: 1, attributes: []attribute{
		{"db.system.name", "postgresql"},
		{"db.namespace", "shop"},
		{"db.collection.name", "carts"},
		{"db.operation.name", "SELECT"},
		{"db.query.text", "SELECT 1"},
		{"server.address", "db"},
		{"peer.service", "carts-db"},
	}}},
	{"query of before", madeSpan{name: "SELECT carts", kind: kindClient, attributes: []attribute{
		{"db.system", "Redis"}, {"db.name", "shop"}, {"db.sql.table", "carts"}, {"db.operation", "GET"}, {"net.peer.name", "db"},
	}}},
	{"cassandra", madeSpan{name: "q", kind: kindClient, attributes: []attribute{{"db.system", "cassandra"}}}},
	{"query of a server", madeSpan{name: "q", kind: kindServer, attributes: []attribute{{"db.system", "mysql"}}}},
	{"message sent", madeSpan{name: "send orders", kind: kindProducer, attributes: []attribute{
		{"messaging.system", "kafka"}, {"messaging.destination.name", "orders"}, {"messaging.operation.name", "send"}, {"messaging.operation.type", "publish"},
	}}},
	{"message of before", madeSpan{name: "orders process", kind: kindConsumer, parent: 1, attributes: []attribute{
		{"messaging.system", "kafka"}, {"messaging.destination", "orders"}, {"messaging.operation", "process"},
	}}},
	{"message with an operation's name alone", madeSpan{name: "poll", kind: kindConsumer, attributes: []attribute{{"messaging.system", "kafka"}, {"messaging.operation.name", "Poll"}}}},
	{"message inside", madeSpan{name: "m", kind: kindInternal, attributes: []attribute{{"messaging.system", "kafka"}, {"messaging.operation", "process"}}}},
	{"call by gRPC", madeSpan{name: "shop.Carts/Get", kind: kindServer, attributes: []attribute{
		{"rpc.system", "grpc"}, {"rpc.service", "shop.Carts"}, {"rpc.method", "Get"}, {"rpc.grpc.status_code", 5},
	}}},
	{"call by gRPC with the names of 2026", madeSpan{name: "shop.Carts/Get", kind: kindClient, attributes: []attribute{
		{"rpc.system.name", "grpc"}, {"rpc.method", "shop.Carts/Get"}, {"rpc.response.status_code", "NOT_FOUND"},
	}}},
	{"call by something else", madeSpan{name: "call", kind: kindClient, attributes: []attribute{{"rpc.system.name", "dubbo"}, {"rpc.response.status_code", "5"}}}},
	{"call of AWS", madeSpan{name: "S3.Get", kind: kindClient, attributes: []attribute{{"rpc.system", "aws-api"}, {"rpc.service", "S3"}}}},
	{"call of AWS, of nothing", madeSpan{name: "Get", kind: kindClient, attributes: []attribute{{"rpc.system", "aws-api"}}}},
	{"call of AWS, server", madeSpan{name: "Get", kind: kindServer, attributes: []attribute{{"rpc.system", "aws-api"}, {"rpc.service", "S3"}}}},
	{"function called", madeSpan{name: "f", kind: kindClient, attributes: []attribute{{"faas.invoked_provider", "AWS"}, {"faas.invoked_name", "f"}}}},
	{"function triggered", madeSpan{name: "f", kind: kindServer, attributes: []attribute{{"faas.trigger", "Timer"}}}},
	{"GraphQL", madeSpan{name: "query q", kind: kindServer, attributes: []attribute{{"graphql.operation.type", "query"}}}},
	{"protocol", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"network.protocol.name", "AMQP"}}}},
	{"protocol http", madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"network.protocol.name", "http"}}}},
	{"inside", madeSpan{name: "sweep", kind: kindInternal, parent: 1}},
	{"inside, of HTTP", madeSpan{name: "sweep", kind: kindInternal, parent: 1, attributes: []attribute{{"http.request.method", "GET"}, {"http.response.status_code", 200}}}},
	{"that went well", madeSpan{name: "sweep", kind: kindInternal, code: codeOK}},
	{"that failed", madeSpan{name: "sweep", kind: kindInternal, code: codeError, parent: 4}},
	{"no name", madeSpan{kind: kindProducer}},
	{"values that are no text", madeSpan{name: "x", kind: kindClient, attributes: []attribute{
		{"db.namespace", 7},
		{"db.collection.name", true},
		{"db.operation.name", 1.5},
		{"http.response.status_code", 200.0},
		{"peer.service", submessage(nil, 5, nil)},
		{"messaging.system", -9223372036854775808},
		{"rpc.method", false},
	}}},
	{"numbers as text, short", madeSpan{name: "x", kind: kindClient, attributes: []attribute{
		{"db.namespace", 1e-7},
		{"db.collection.name", 1e21},
		{"db.operation.name", 123456789.125},
		{"peer.service", 0.1},
		{"rpc.method", 2e-3},
		{"rpc.service", 1e20},
		{"messaging.system", 5e-324},
		{"messaging.destination.name", 1.7976931348623157e308},
		{"server.address", -2.5e-10},
	}}},
	{"numbers as text, odd", madeSpan{name: "x", kind: kindInternal, attributes: []attribute{
		{"db.namespace", 2.2250738585072014e-308},
		{"db.collection.name", 1e23},
		{"db.operation.name", 2e23},
		{"peer.service", 9007199254740993.0},
		{"rpc.method", 4.35},
		{"rpc.service", 1e-6},
		{"messaging.system", 100.0},
		{"server.address", 8.41e21},
	}}},
	{"list before an older name", madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"db.system.name", submessage(nil, 5, nil)}, {"db.system", "mysql"}, {"http.response.status_code", submessage(nil, 5, nil)}, {"http.status_code", 200}}}},
	{"attribute twice", madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"peer.service", "a"}, {"peer.service", "b"}, {"db.namespace", 1}, {"db.namespace", "1"}}}},
	{"names that are nearly ours", madeSpan{name: "x", kind: kindClient, attributes: []attribute{{"http.request.methods", "a"}, {"http.request.metho", "a"}, {"db.nameapace", "x"}, {"", "x"}, {"HTTP.ROUTE", "x"}}}},
	{"letters of all kinds", madeSpan{name: "größe 🌍 /é", kind: kindClient, attributes: []attribute{{"db.system", "ÄBC Def"}, {"db.namespace", "日本"}, {"peer.service", "a\x00b"}}}},
	{"statuses of HTTP", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", "+204"}}}},
	{"status of HTTP that is negative", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", -1}, {"rpc.grpc.status_code", "what"}}}},
	{"status of HTTP in 33 bits", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", 1 << 32}}}},
	{"status of HTTP in 16 bits", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", 65535}}}},
	{"status of HTTP in 7 bits", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", 127}}}},
	{"status of HTTP with an exponent", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", "2.04e2"}}}},
	{"status of HTTP that is not whole", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", 200.5}}}},
	{"status of HTTP with a space", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", " 200"}}}},
	{"status of HTTP with a letter", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", "200f"}}}},
	{"status of HTTP that is true", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", true}}}},
	{"status of HTTP with zeros", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"http.response.status_code", "000000000000000000000200"}}}},
	{"status of gRPC by name", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.grpc.status_code", "StatusCode.Cancelled"}}}},
	{"status of gRPC with zeros", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.grpc.status_code", "0014"}}}},
	{"status of gRPC in 33 bits", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.grpc.status_code", "4294967296"}}}},
	{"status of gRPC with a sign", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.grpc.status_code", "+1"}}}},
	{"status of gRPC as a number", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.grpc.status_code", 13.0}}}},
	{"older status of gRPC before the present one", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.grpc.status_code", ""}, {"rpc.system", "grpc"}, {"rpc.response.status_code", "5"}}}},
	{"system by its older name", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.system", "grpc"}, {"rpc.response.status_code", "UNAVAILABLE"}}}},
	{"system of another present name", madeSpan{name: "x", kind: kindServer, attributes: []attribute{{"rpc.system.name", "dubbo"}, {"rpc.system", "grpc"}, {"rpc.response.status_code", "5"}}}},
}

// TestLabelsFileIsWhatIsCounted computes every key of the file.
func TestLabelsFileIsWhatIsCounted(t *testing.T) {
	var all []vector
	for _, made := range vectorSpans {
		all = append(all, vectorOf(t, made.name, "shop", made.span))
	}
	for _, system := range []string{"h2", "oracle.db", "mongodb", "opensearch", "memcached", "elasticsearch", "redis", "dynamodb", "other_sql", "mariadb"} {
		all = append(all, vectorOf(t, system, "s", madeSpan{name: "q", kind: kindClient, attributes: []attribute{{"db.system", system}}}))
	}
	rnd := rand.New(rand.NewPCG(24, 24))
	for i := range 300 {
		s := randomSpan(rnd, attributeNames[1:])
		if s.kind == kindUnspecified { // which Java has none of
			s.kind = kindServer
		}
		for at := range s.attributes {
			if text, is := s.attributes[at].value.(string); is {
				s.attributes[at].value = text[:min(len(text), 60)]
			}
		}
		s.name = s.name[:min(len(s.name), 60)]
		all = append(all, vectorOf(t, fmt.Sprint("random ", i), "shop", s))
	}
	whole := bytes.NewBufferString("[\n")
	for i, v := range all {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			whole.WriteString(",\n")
		}
		whole.Write(line)
	}
	whole.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile(vectorsFile, whole.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, whole.Bytes()) {
		t.Errorf("%s is not what is counted; run go test ./internal/oteltraces -run LabelsFile -update and look at the difference", vectorsFile)
	}
}
