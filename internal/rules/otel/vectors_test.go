package otel_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

var update = flag.Bool("update", false, "rewrite testdata/labels.json from the spans in this package's tests")

// vectorsFile contains test vectors for other implementations of the same labels, such as the
// client for OpenTelemetry's Java agent.
const vectorsFile = "testdata/labels.json"

// vector is a span, and the key under which it is counted.
type vector struct {
	Name    string `json:"name"`
	Service string `json:"service"` // service name of the resource
	Span    string `json:"span"`    // name of the span
	Kind    string `json:"kind"`
	IsRoot  bool   `json:"root"`
	Status  string `json:"status"`
	// Name, type, and value as text. If a name is repeated, the first one counts.
	Attributes [][3]string    `json:"attributes"`
	Labels     map[string]any `json:"labels"`
	// LabelsAsSent are the labels with --span-names=as-sent, unless they are the same.
	LabelsAsSent map[string]any `json:"labels_as_sent,omitempty"`
	Key          string         `json:"key"` // bytes of Labels, in hex
	Flags        span.Flags     `json:"flags"`
}

// labelsOf returns the labels that are set, by their names in docs/protocol.md.
func labelsOf(k *span.Key) map[string]any {
	labels := map[string]any{"trace_root": k.TraceRoot == span.TraceRootTrue}
	for name, text := range map[string]string{
		"service":     k.Service,
		"operation":   k.Operation,
		"resource":    k.Resource,
		"type":        k.Type,
		"kind":        k.Kind,
		"http_method": k.HTTPMethod, "http_endpoint": k.HTTPEndpoint, "grpc_status": k.GRPCStatus,
	} {
		if text != "" {
			labels[name] = text
		}
	}
	if k.HTTPStatus != 0 {
		labels["http_status"] = k.HTTPStatus
	}
	for name, tags := range map[string][]string{
		"peer_tags":       k.PeerTags,
		"additional_tags": k.AdditionalTags,
	} {
		if len(tags) != 0 {
			labels[name] = tags
		}
	}
	return labels
}

var statusNames = [...]string{"unset", otlptest.OK: "ok", otlptest.Error: "error"}

// vectorOf counts a span and returns its vector.
func vectorOf(t *testing.T, name, service string, s otlptest.Span) vector {
	t.Helper()
	body := otlptest.Request(otlptest.Resource{
		Attributes: []otlptest.Attribute{{"service.name", service}},
		Scopes:     [][]otlptest.Span{{s}},
	})
	got := countedOf(t, otel.NewCounter(), body, standard())[0]
	asSent := countedOf(t, otel.NewCounter(), body, otel.NewPolicy(otel.Labels{KeepNames: true}))[0]
	v := vector{
		Name:       name,
		Service:    service,
		Span:       s.Name,
		Kind:       got.key.Kind,
		IsRoot:     s.Parent == 0,
		Status:     statusNames[s.Code],
		Attributes: [][3]string{}, Key: hex.EncodeToString(got.bytes), Flags: got.Flags & span.KnownFlags,
	}
	for _, a := range s.Attributes {
		v.Attributes = append(v.Attributes, written(a))
	}
	v.Labels = labelsOf(&got.key)
	if v.LabelsAsSent = labelsOf(&asSent.key); reflect.DeepEqual(v.Labels, v.LabelsAsSent) {
		v.LabelsAsSent = nil
	}
	return v
}

// written returns the name, type and value of an attribute for the file of test vectors. A list has no value there,
// because lists do not become labels.
func written(a otlptest.Attribute) [3]string {
	switch v := a[1].(type) {
	case bool:
		return [3]string{a[0].(string), "bool", strconv.FormatBool(v)}
	case int:
		return [3]string{a[0].(string), "int", strconv.Itoa(v)}
	case float64:
		return [3]string{a[0].(string), "double", strconv.FormatFloat(v, 'g', -1, 64)}
	case []byte:
		return [3]string{a[0].(string), "list", ""}
	}
	return [3]string{a[0].(string), "string", a[1].(string)}
}

// vectorSpans contains spans for each convention and for unusual values. The names describe the
// cases.
var vectorSpans = []struct {
	name string
	span otlptest.Span
}{
	{"call of a model", otlptest.Span{
		Name: "chat gpt-4o", Kind: spantable.KindClient,
		Attributes: []otlptest.Attribute{
			{"gen_ai.operation.name", "chat"},
			{"gen_ai.provider.name", "openai"},
			{"gen_ai.system", "az.ai.openai"},
			{"gen_ai.request.model", "gpt-4o"},
			{"gen_ai.response.model", "gpt-4o-2024-08-06"},
			{"gen_ai.usage.input_tokens", 12},
			{"server.address", "api.openai.com"},
		},
	}},
	{"call of a model of before 2025", otlptest.Span{
		Name: "chat gpt-4o", Kind: spantable.KindClient,
		Attributes: []otlptest.Attribute{
			{"gen_ai.operation.name", "chat"}, {"gen_ai.system", "openai"}, {"gen_ai.request.model", "gpt-4o"},
		},
	}},
	{"request", otlptest.Span{
		Name: "GET /carts/{id}", Kind: spantable.KindServer,
		Attributes: []otlptest.Attribute{
			{"http.request.method", "GET"},
			{"http.route", "/carts/{id}"},
			{"url.path", "/carts/7"},
			{"http.response.status_code", 200},
			{"server.address", "shop"},
		},
	}},
	{
		"request of before 2023",
		otlptest.Span{
			Name: "GET /carts/{id}", Kind: spantable.KindServer, Parent: 9,
			Attributes: []otlptest.Attribute{
				{"http.method", "GET"},
				{"http.route", "/carts/{id}"},
				{"http.status_code", 200},
				{"net.host.name", "shop"},
				{"net.peer.name", "caller"},
			},
		},
	},
	{
		"present names before older ones",
		otlptest.Span{Name: "GET", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
			{"http.method", "OLD"},
			{"http.request.method", "GET"},
			{"http.status_code", 1},
			{"http.response.status_code", "404"},
			{"net.peer.name", "old"},
			{"server.address", "new"},
			{"db.system", "old"},
			{"rpc.system", "old"},
			{"rpc.system.name", "new"},
		}},
	},
	{
		"present name that is empty",
		otlptest.Span{
			Name: "GET", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{
				{"http.request.method", ""},
				{"http.method", "GET"},
				{"server.address", ""},
				{"net.peer.name", "x"},
			},
		},
	},
	{"query", otlptest.Span{
		Name: "SELECT carts", Kind: spantable.KindClient, Parent: 1,
		Attributes: []otlptest.Attribute{
			{"db.system.name", "postgresql"},
			{"db.namespace", "shop"},
			{"db.collection.name", "carts"},
			{"db.operation.name", "SELECT"},
			{"db.query.text", "SELECT 1"},
			{"server.address", "db"},
			{"peer.service", "carts-db"},
		},
	}},
	{
		"query of before",
		otlptest.Span{Name: "SELECT carts", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
			{"db.system", "Redis"},
			{"db.name", "shop"},
			{"db.sql.table", "carts"},
			{"db.operation", "GET"},
			{"net.peer.name", "db"},
		}},
	},
	{
		"cassandra",
		otlptest.Span{
			Name: "q", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"db.system", "cassandra"}},
		},
	},
	{
		"query of a server",
		otlptest.Span{
			Name: "q", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"db.system", "mysql"}},
		},
	},
	{
		"message sent",
		otlptest.Span{Name: "send orders", Kind: spantable.KindProducer, Attributes: []otlptest.Attribute{
			{"messaging.system", "kafka"},
			{"messaging.destination.name", "orders"},
			{"messaging.operation.name", "send"},
			{"messaging.operation.type", "publish"},
		}},
	},
	{
		"message of before",
		otlptest.Span{
			Name: "orders process", Kind: spantable.KindConsumer, Parent: 1,
			Attributes: []otlptest.Attribute{
				{"messaging.system", "kafka"},
				{"messaging.destination", "orders"},
				{"messaging.operation", "process"},
			},
		},
	},
	{
		"message with an operation's name alone",
		otlptest.Span{
			Name: "poll", Kind: spantable.KindConsumer,
			Attributes: []otlptest.Attribute{
				{"messaging.system", "kafka"},
				{"messaging.operation.name", "Poll"},
			},
		},
	},
	{
		"message inside",
		otlptest.Span{
			Name: "m", Kind: spantable.KindInternal,
			Attributes: []otlptest.Attribute{
				{"messaging.system", "kafka"},
				{"messaging.operation", "process"},
			},
		},
	},
	{
		"call by gRPC",
		otlptest.Span{Name: "shop.Carts/Get", Kind: spantable.KindServer, Attributes: []otlptest.Attribute{
			{"rpc.system", "grpc"},
			{"rpc.service", "shop.Carts"},
			{"rpc.method", "Get"},
			{"rpc.grpc.status_code", 5},
		}},
	},
	{
		"call by gRPC with the names of 2026",
		otlptest.Span{Name: "shop.Carts/Get", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
			{"rpc.system.name", "grpc"},
			{"rpc.method", "shop.Carts/Get"},
			{"rpc.response.status_code", "NOT_FOUND"},
		}},
	},
	{
		"call by something else",
		otlptest.Span{
			Name: "call", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"rpc.system.name", "dubbo"}, {"rpc.response.status_code", "5"}},
		},
	},
	{
		"call of AWS",
		otlptest.Span{
			Name: "S3.Get", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"rpc.system", "aws-api"}, {"rpc.service", "S3"}},
		},
	},
	{
		"call of AWS, of nothing",
		otlptest.Span{
			Name: "Get", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"rpc.system", "aws-api"}},
		},
	},
	{
		"call of AWS, server",
		otlptest.Span{
			Name: "Get", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"rpc.system", "aws-api"}, {"rpc.service", "S3"}},
		},
	},
	{
		"function called",
		otlptest.Span{
			Name: "f", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"faas.invoked_provider", "AWS"}, {"faas.invoked_name", "f"}},
		},
	},
	{
		"function triggered",
		otlptest.Span{
			Name: "f", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"faas.trigger", "Timer"}},
		},
	},
	{"GraphQL", otlptest.Span{
		Name: "query q", Kind: spantable.KindServer,
		Attributes: []otlptest.Attribute{{"graphql.operation.type", "query"}},
	}},
	{
		"protocol",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"network.protocol.name", "AMQP"}},
		},
	},
	{
		"protocol http",
		otlptest.Span{
			Name: "x", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{{"network.protocol.name", "http"}},
		},
	},
	{"inside", otlptest.Span{Name: "sweep", Kind: spantable.KindInternal, Parent: 1}},
	{
		"inside, of HTTP",
		otlptest.Span{
			Name: "sweep", Kind: spantable.KindInternal, Parent: 1,
			Attributes: []otlptest.Attribute{
				{"http.request.method", "GET"},
				{"http.response.status_code", 200},
			},
		},
	},
	{"that went well", otlptest.Span{Name: "sweep", Kind: spantable.KindInternal, Code: otlptest.OK}},
	{
		"that failed",
		otlptest.Span{Name: "sweep", Kind: spantable.KindInternal, Code: otlptest.Error, Parent: 4},
	},
	{"no name", otlptest.Span{Kind: spantable.KindProducer}},
	{
		"values that are no text",
		otlptest.Span{Name: "x", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
			{"db.namespace", 7},
			{"db.collection.name", true},
			{"db.operation.name", 1.5},
			{"http.response.status_code", 200.0},
			{"peer.service", otlptest.Field(nil, 5, nil)},
			{"messaging.system", -9223372036854775808},
			{"rpc.method", false},
		}},
	},
	{
		"numbers as text, short",
		otlptest.Span{Name: "x", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
			{"db.namespace", 1e-7},
			{"db.collection.name", 1e21},
			{"db.operation.name", 123456789.125},
			{"peer.service", 0.1},
			{"rpc.method", 2e-3},
			{"rpc.service", 1e20},
			{"messaging.system", 5e-324},
			{"messaging.destination.name", 1.7976931348623157e308},
			{"server.address", -2.5e-10},
		}},
	},
	{
		"numbers as text, odd",
		otlptest.Span{Name: "x", Kind: spantable.KindClient, Attributes: []otlptest.Attribute{
			{"db.namespace", 2.2250738585072014e-308},
			{"db.collection.name", 1e23},
			{"db.operation.name", 2e23},
			{"peer.service", 9007199254740993.0},
			{"rpc.method", 4.35},
			{"rpc.service", 1e-6},
			{"messaging.system", 100.0},
			{"server.address", 8.41e21},
		}},
	},
	{
		"peer of work inside",
		otlptest.Span{
			Name: "x", Kind: spantable.KindInternal,
			Attributes: []otlptest.Attribute{
				{"peer.service", "carts"},
				{"server.address", "shop"},
				{"net.peer.name", "caller"},
				{"db.namespace", "shop"},
			},
		},
	},
	{
		"peer of a consumer",
		otlptest.Span{
			Name: "x", Kind: spantable.KindConsumer,
			Attributes: []otlptest.Attribute{{"peer.service", "orders"}, {"net.peer.name", "broker"}},
		},
	},
	{
		"list before an older name",
		otlptest.Span{
			Name: "x", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{
				{"db.system.name", otlptest.Field(nil, 5, nil)},
				{"db.system", "mysql"},
				{"http.response.status_code", otlptest.Field(nil, 5, nil)},
				{"http.status_code", 200},
			},
		},
	},
	{
		"attribute twice",
		otlptest.Span{
			Name: "x", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{
				{"peer.service", "a"},
				{"peer.service", "b"},
				{"db.namespace", 1},
				{"db.namespace", "1"},
			},
		},
	},
	{
		"names that are nearly ours",
		otlptest.Span{
			Name: "x", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{
				{"http.request.methods", "a"},
				{"http.request.metho", "a"},
				{"db.nameapace", "x"},
				{"", "x"},
				{"HTTP.ROUTE", "x"},
			},
		},
	},
	{
		"letters of all kinds",
		otlptest.Span{
			Name: "größe 🌍 /é", Kind: spantable.KindClient,
			Attributes: []otlptest.Attribute{
				{"db.system", "ÄBC Def"},
				{"db.namespace", "日本"},
				{"peer.service", "a\x00b"},
			},
		},
	},
	{
		"statuses of HTTP",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", "+204"}},
		},
	},
	{
		"status of HTTP that is negative",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{
				{"http.response.status_code", -1},
				{"rpc.grpc.status_code", "what"},
			},
		},
	},
	{
		"status of HTTP in 33 bits",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", 1 << 32}},
		},
	},
	{
		"status of HTTP in 16 bits",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", 65535}},
		},
	},
	{
		"status of HTTP in 7 bits",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", 127}},
		},
	},
	{
		"status of HTTP with an exponent",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", "2.04e2"}},
		},
	},
	{
		"status of HTTP that is not whole",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", 200.5}},
		},
	},
	{
		"status of HTTP with a space",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", " 200"}},
		},
	},
	{
		"status of HTTP with a letter",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", "200f"}},
		},
	},
	{
		"status of HTTP that is true",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", true}},
		},
	},
	{
		"status of HTTP with zeros",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"http.response.status_code", "000000000000000000000200"}},
		},
	},
	{
		"status of gRPC by name",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"rpc.grpc.status_code", "StatusCode.Cancelled"}},
		},
	},
	{
		"status of gRPC with zeros",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"rpc.grpc.status_code", "0014"}},
		},
	},
	{
		"status of gRPC in 33 bits",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"rpc.grpc.status_code", "4294967296"}},
		},
	},
	{
		"status of gRPC with a sign",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"rpc.grpc.status_code", "+1"}},
		},
	},
	{
		"status of gRPC as a number",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{{"rpc.grpc.status_code", 13.0}},
		},
	},
	{
		"older status of gRPC before the present one",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{
				{"rpc.grpc.status_code", ""},
				{"rpc.system", "grpc"},
				{"rpc.response.status_code", "5"},
			},
		},
	},
	{
		"system by its older name",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{
				{"rpc.system", "grpc"},
				{"rpc.response.status_code", "UNAVAILABLE"},
			},
		},
	},
	{
		"system of another present name",
		otlptest.Span{
			Name: "x", Kind: spantable.KindServer,
			Attributes: []otlptest.Attribute{
				{"rpc.system.name", "dubbo"},
				{"rpc.system", "grpc"},
				{"rpc.response.status_code", "5"},
			},
		},
	},
}

// TestLabelsFile_MatchesKeys computes every key of the file.
func TestLabelsFile_MatchesKeys(t *testing.T) {
	var all []vector
	for _, made := range vectorSpans {
		all = append(all, vectorOf(t, made.name, "shop", made.span))
	}
	for _, sent := range sentSpans {
		all = append(all, vectorOf(t, "name of "+sent.sender, "shop",
			otlptest.Span{Name: sent.name, Kind: sent.kind, Attributes: sent.attributes}))
	}
	for _, system := range []string{
		"h2", "oracle.db", "mongodb", "opensearch", "memcached", "elasticsearch",
		"redis", "dynamodb", "other_sql", "mariadb",
	} {
		all = append(all,
			vectorOf(t, system, "s",
				otlptest.Span{
					Name: "q", Kind: spantable.KindClient,
					Attributes: []otlptest.Attribute{{"db.system", system}},
				}))
	}
	rnd := rand.New(rand.NewPCG(24, 24))
	for i := range 300 {
		s := randomSpan(rnd, otel.AttributeNames)
		if s.Kind == spantable.KindUnknown { // Java has no such kind
			s.Kind = spantable.KindServer
		}
		for at := range s.Attributes {
			if text, ok := s.Attributes[at][1].(string); ok {
				s.Attributes[at][1] = text[:min(len(text), 60)]
			}
		}
		s.Name = s.Name[:min(len(s.Name), 60)]
		all = append(all, vectorOf(t, fmt.Sprint("random ", i), "shop", s))
	}
	document := bytes.NewBufferString("[\n")
	for i, v := range all {
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			document.WriteString(",\n")
		}
		document.Write(line)
	}
	document.WriteString("\n]\n")
	if *update {
		if err := os.WriteFile(vectorsFile, document.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file, document.Bytes()) {
		t.Errorf("%s is not what is counted; run go test ./internal/rules/otel -run LabelsFile -update and look at the difference", vectorsFile)
	}
}
