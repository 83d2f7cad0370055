package otel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/testutil/otlptest"
)

// attributes returns attributes from alternating names and values.
func attributes(all ...any) (list []otlptest.Attribute) {
	for i := 0; i < len(all); i += 2 {
		list = append(list, otlptest.Attribute{all[i], all[i+1]})
	}
	return list
}

// inLanguage returns the body of a request of an SDK in a language.
func inLanguage(language string, spans ...otlptest.Span) []byte {
	return otlptest.Request(otlptest.Resource{
		Attributes: attributes("service.name", "shop", "telemetry.sdk.language", language),
		Scopes:     [][]otlptest.Span{spans},
	})
}

const (
	server   = spantable.KindServer
	client   = spantable.KindClient
	internal = spantable.KindInternal
	producer = spantable.KindProducer
	consumer = spantable.KindConsumer
)

// sentSpans contains spans as instrumentations send them, with the name and the route under which
// they are counted.
var sentSpans = []struct {
	sender     string // language, and instrumentation
	kind       spantable.Kind
	name       string
	attributes []otlptest.Attribute
	want       string // name; the sent one if it is empty
	route      string
}{
	// HTTP servers
	{
		"go otelhttp, around the mux", server, "GET /users/{id}",
		attributes("http.request.method", "GET", "url.path", "/users/7", "http.response.status_code", 200), "", "/users/{id}",
	},
	{
		"go otelhttp, route without placeholders", server, "POST /v1/checkout",
		attributes("http.request.method", "POST", "url.path", "/v1/checkout", "http.response.status_code", 400), "", "/v1/checkout",
	},
	{
		"go otelhttp, subtree", server, "GET /static/",
		attributes("http.request.method", "GET", "url.path", "/static/app.js"), "", "/static/",
	},
	{
		"go otelhttp, under the mux", server, "GET /users/{id}",
		attributes("http.request.method", "GET", "http.route", "/users/{id}", "url.path", "/users/7"), "", "/users/{id}",
	},
	{
		"go otelhttp, unknown path", server, "GET",
		attributes("http.request.method", "GET", "url.path", "/nowhere"), "", "",
	},
	{
		"go otelhttp, name set to the path", server, "GET /users/7",
		attributes("http.request.method", "GET", "url.path", "/users/7", "http.response.status_code", 200), "GET", "",
	},
	{
		"go otelhttp, name set to an unknown path", server, "GET /nowhere",
		attributes("http.request.method", "GET", "url.path", "/nowhere", "http.response.status_code", 404), "GET", "",
	},
	{
		"go otelhttp before 2026", server, "orders",
		attributes("http.request.method", "GET", "url.path", "/orders/7"), "GET", "",
	},
	{
		"go otelhttp before 2026, route as operation", server, "/orders/{number}",
		attributes("http.request.method", "GET", "url.path", "/orders/7"), "GET /orders/{number}", "/orders/{number}",
	},
	{
		"go otelgin", server, "GET /users/:id",
		attributes("http.request.method", "GET", "http.route", "/users/:id", "url.path", "/users/7"), "", "/users/:id",
	},
	{
		"python Flask", server, "GET /orders/<int:number>",
		attributes("http.method", "GET", "http.target", "/orders/7", "http.route", "/orders/<int:number>"), "", "/orders/<int:number>",
	},
	{
		"python Flask, unknown path", server, "GET /nowhere/672",
		attributes("http.method", "GET", "http.target", "/nowhere/672?page=2", "http.status_code", 404), "GET", "",
	},
	{
		"python Flask, unknown path without a number", server, "GET /nowhere",
		attributes("http.request.method", "GET", "url.path", "/nowhere", "http.response.status_code", 401), "GET", "",
	},
	{
		"python Flask, unknown path with placeholders", server, "GET /a b/{id}",
		attributes("http.method", "GET", "http.target", "/a%20b/%7Bid%7d"), "GET", "",
	},
	{
		"python Flask, unknown escaped path", server, "GET /a:\xc3\xa9",
		attributes("http.method", "GET", "http.url", "http://shop:80/app/a:%C3%A9?x"), "GET", "",
	},
	{
		"python FastAPI", server, "GET /users/{user_id}",
		attributes("http.method", "GET", "http.route", "/users/{user_id}", "http.target", "/users/7"), "", "/users/{user_id}",
	},
	{
		"python FastAPI, response", internal, "GET /users/{user_id} http send",
		attributes("asgi.event.type", "http.response.start", "http.status_code", 200), "", "",
	},
	{
		"python Django", server, "GET users/<int:pk>/",
		attributes("http.method", "GET", "http.route", "users/<int:pk>/"), "", "users/<int:pk>/",
	},
	{
		"python Django before 2023", server, "users/<int:pk>/",
		attributes("http.method", "GET", "http.route", "users/<int:pk>/"), "GET users/<int:pk>/", "users/<int:pk>/",
	},
	{"nodejs http", server, "GET", attributes("http.method", "GET", "http.target", "/users/7"), "", ""},
	{"nodejs http before 2023", server, "HTTP GET", attributes("http.method", "GET", "http.target", "/users/7"), "GET", ""},
	{
		"nodejs express", server, "GET /orders/:number",
		attributes("http.method", "GET", "http.route", "/orders/:number", "http.target", "/orders/7"), "", "/orders/:number",
	},
	{
		"nodejs express, handler", internal, "request handler - /orders/:number",
		attributes("http.route", "/orders/:number", "express.type", "request_handler"), "", "/orders/:number",
	},
	{
		"java Tomcat", server, "GET /carts/{id}",
		attributes("http.request.method", "GET", "http.route", "/carts/{id}", "url.path", "/carts/7"), "", "/carts/{id}",
	},
	{
		"java, unknown method", server, "HTTP /carts/{id}",
		attributes("http.request.method", "_OTHER", "http.request.method_original", "BREW", "http.route", "/carts/{id}"), "", "/carts/{id}",
	},
	{
		"ruby Rack before 2023, method of the caller", server, "HTTP X7F3A",
		attributes("http.method", "X7F3A", "http.target", "/"), "HTTP", "",
	},
	{"dotnet before 2023", server, "/users/7", attributes("http.method", "GET", "http.target", "/users/7"), "GET", ""},
	{
		"webjs, document load", internal, "documentFetch",
		attributes("http.url", "https://shop.example/"), "", "",
	},

	// HTTP clients
	{"go otelhttp", client, "HTTP GET", attributes("http.request.method", "GET", "url.full", "http://x/y"), "GET", ""},
	{"python requests", client, "GET", attributes("http.method", "GET", "http.url", "http://x/y"), "", ""},
	{
		"nodejs with a template", client, "GET",
		attributes("http.request.method", "GET", "url.full", "http://x/users/7", "url.template", "/users/{id}"), "GET /users/{id}", "",
	},
	{
		"dotnet with the URL", client, "GET https://x/users/7",
		attributes("http.request.method", "GET", "url.full", "https://x/users/7"), "GET", "",
	},
	{
		"webjs with the path", client, "GET /users/7",
		attributes("http.request.method", "get", "url.full", "https://x/users/7"), "GET", "",
	},
	{
		"java Quarkus", client, "GET /users/{id}",
		attributes("http.request.method", "GET", "url.full", "https://x/users/7"), "", "",
	},

	// databases
	{
		"java JDBC before 2025", client, "SELECT shop.carts",
		attributes("db.system", "postgresql", "db.name", "shop", "db.operation", "SELECT", "db.sql.table", "carts"), "SELECT carts", "",
	},
	{
		"java JDBC", client, "SELECT carts",
		attributes("db.system.name", "postgresql", "db.namespace", "shop", "db.operation.name", "SELECT", "db.collection.name", "carts"),
		"", "",
	},
	{
		"dotnet SqlClient with a summary", client, "shop",
		attributes("db.system.name", "mysql", "db.operation.name", "SELECT", "db.query.summary", "SELECT songs artists"),
		"SELECT songs artists", "",
	},
	{
		"nodejs pg", client, "pg.query:SELECT shop",
		attributes("db.system", "postgresql", "db.name", "shop", "db.statement", "SELECT * FROM carts"), "", "",
	},
	{
		"nodejs mongodb", client, "mongodb.find",
		attributes("db.system", "mongodb", "db.name", "shop", "db.operation", "find", "db.mongodb.collection", "carts"), "find carts", "",
	},
	{"nodejs redis", client, "redis-GET", attributes("db.system", "redis", "db.operation", "GET", "db.name", "0"), "GET", ""},
	{
		"java lettuce", client, "SET",
		attributes("db.system.name", "redis", "db.operation.name", "SET", "server.address", "cache", "server.port", 6379), "", "",
	},
	{
		"java memcached", client, "get",
		attributes("db.system.name", "memcached", "db.operation.name", "get", "server.address", "cache", "server.port", 11211),
		"get cache:11211", "",
	},
	{
		"python memcached before 2023", client, "get",
		attributes("db.system", "memcached", "db.operation", "get", "net.peer.name", "cache"), "get cache", "",
	},
	{
		"java Elasticsearch", client, "search my-index",
		attributes("db.system.name", "elasticsearch", "db.operation.name", "search", "db.collection.name", "my-index",
			"http.request.method", "POST", "url.full", "https://es/my-index/_search"), "", "",
	},
	{
		"dotnet with a procedure", client, "shop",
		attributes("db.system.name", "mysql", "db.operation.name", "EXECUTE", "db.stored_procedure.name", "GetCart", "db.namespace", "shop"),
		"EXECUTE GetCart", "",
	},
	{
		"go, database only", client, "sql.conn.query",
		attributes("db.system", "mysql", "db.statement", "SELECT 1"), "", "",
	},
	{
		"php, statement as name", client, "SELECT * FROM carts WHERE id = 7",
		attributes("db.system", "mysql", "db.name", "shop", "db.statement", "SELECT * FROM carts WHERE id = 7"), "shop", "",
	},
	{
		"ruby, statement as name", client, "GET cart:7",
		attributes("db.system", "redis", "db.statement", "GET cart:7", "net.peer.name", "cache"), "redis", "",
	},
	{
		"cpp, server with a database", server, "POST /query",
		attributes("http.request.method", "POST", "http.route", "/query", "db.system.name", "mysql", "db.operation.name", "SELECT"),
		"", "/query",
	},

	// RPC
	{
		"go otelgrpc", server, "shop.Carts/Get",
		attributes("rpc.system.name", "grpc", "rpc.method", "shop.Carts/Get"), "", "",
	},
	{
		"python grpc", client, "/shop.Carts/Get",
		attributes("rpc.system", "grpc", "rpc.service", "shop.Carts", "rpc.method", "Get"), "shop.Carts/Get", "",
	},
	{
		"nodejs grpc-js", client, "grpc.shop.Carts/Get",
		attributes("rpc.system", "grpc", "rpc.service", "shop.Carts", "rpc.method", "Get"), "shop.Carts/Get", "",
	},
	{
		"dotnet gRPC", server, "POST /shop.Carts/Get",
		attributes("http.request.method", "POST", "http.route", "/shop.Carts/Get", "rpc.system", "grpc", "rpc.service", "shop.Carts",
			"rpc.method", "Get"), "shop.Carts/Get", "/shop.Carts/Get",
	},
	{"java, unknown method", server, "x7.F/3a", attributes("rpc.system.name", "grpc", "rpc.method", "_OTHER"), "grpc", ""},
	{"java JSON-RPC", server, "call", attributes("rpc.system.name", "jsonrpc", "rpc.method", "sum"), "sum", ""},
	{
		"java AWS SDK", client, "DynamoDB.PutItem",
		attributes("rpc.system", "aws-api", "rpc.service", "DynamoDB", "rpc.method", "PutItem", "db.system", "dynamodb",
			"db.operation", "PutItem"), "", "",
	},

	// messaging
	{
		"java Kafka before 2024", producer, "orders publish",
		attributes("messaging.system", "kafka", "messaging.destination.name", "orders", "messaging.operation", "publish"),
		"publish orders", "",
	},
	{
		"java Kafka", consumer, "process orders",
		attributes("messaging.system", "kafka", "messaging.destination.name", "orders", "messaging.operation.name", "process",
			"messaging.operation.type", "process"), "", "",
	},
	{
		"python pika before 2023", consumer, "orders receive",
		attributes("messaging.system", "rabbitmq", "messaging.destination", "orders", "messaging.operation", "receive"),
		"receive orders", "",
	},
	{
		"dotnet with a template", producer, "send /customers/7",
		attributes("messaging.operation.name", "send", "messaging.destination.name", "/customers/7",
			"messaging.destination.template", "/customers/{id}", "messaging.destination.temporary", true), "send /customers/{id}", "",
	},
	{
		"java, temporary queue", producer, "publish amq.gen-7f3a",
		attributes("messaging.operation", "publish", "messaging.destination.name", "amq.gen-7f3a", "messaging.destination.temporary", true),
		"publish", "",
	},
	{
		"java, anonymous queue", producer, "send amq.gen-7f3a",
		attributes("messaging.operation.name", "send", "messaging.destination.name", "amq.gen-7f3a",
			"messaging.destination.anonymous", true), "send", "",
	},
	{
		"java, temporary queue before 2023", producer, "(temporary) send",
		attributes("messaging.operation", "send", "messaging.destination", "7f3a", "messaging.temp_destination", true), "send", "",
	},
	{
		"java, broker", client, "commit",
		attributes("messaging.operation.name", "commit", "server.address", "broker", "server.port", 9092), "commit broker:9092", "",
	},
	{"go, system only", producer, "orders sent", attributes("messaging.system", "nats"), "", ""},

	// GenAI
	{
		"python OpenAI", client, "chat gpt-5",
		attributes("gen_ai.operation.name", "chat", "gen_ai.request.model", "gpt-5", "gen_ai.provider.name", "openai"), "", "",
	},
	{
		"python OpenAI with its own name", client, "openai.chat",
		attributes("gen_ai.operation.name", "chat", "gen_ai.request.model", "gpt-5", "gen_ai.system", "openai",
			"http.request.method", "POST"), "chat gpt-5", "",
	},
	{
		"python, conversation in the name", internal, "agent 7f3a-11",
		attributes("gen_ai.operation.name", "invoke_agent", "gen_ai.agent.name", "helper", "gen_ai.request.model", "gpt-5"),
		"invoke_agent helper", "",
	},
	{"python, no agent name", internal, "run", attributes("gen_ai.operation.name", "invoke_agent"), "invoke_agent", ""},
	{
		"python, tool", internal, "execute_tool weather",
		attributes("gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "weather"), "", "",
	},
	{
		"python, MCP", client, "tools/call weather",
		attributes("mcp.method.name", "tools/call", "gen_ai.operation.name", "execute_tool", "gen_ai.tool.name", "weather"), "", "",
	},
	{
		"python, OpenLLMetry", client, "openai.chat",
		attributes("llm.request.type", "chat", "gen_ai.request.model", "gpt-5"), "", "",
	},

	// Zipkin, whose reporters write names in lower case
	{
		"Brave", server, "get /users/{userid}",
		attributes("http.method", "GET", "http.path", "/users/7"), "GET /users/{userid}", "/users/{userid}",
	},
	{
		"Brave, route without placeholders", server, "get /health",
		attributes("http.method", "GET", "http.path", "/Health"), "GET /health", "/health",
	},
	{"Brave, unknown path", server, "get not_found", attributes("http.method", "GET", "http.path", "/nowhere"), "GET", ""},
	{"Brave", client, "get", attributes("http.method", "GET", "http.path", "/users/7"), "GET", ""},

	// no convention
	{"go, own work", internal, "sweep /carts/7", nil, "", ""},
	{"go, own work of a server", server, "GET /carts/7", attributes("url.path", "/carts/7"), "", ""},
	{"go, empty method", server, "GET /carts/7", attributes("http.request.method", "", "url.path", "/carts/7"), "", ""},
	{"go, method that is a list", server, "GET /carts/7", attributes("http.request.method", otlptest.Field(nil, 5, nil)), "", ""},
	{"go, function", server, "resize", attributes("faas.trigger", "timer"), "", ""},
}

// TestNames_ByConvention counts the spans of many instrumentations, both in one request and by
// themselves.
func TestNames_ByConvention(t *testing.T) {
	for _, sent := range sentSpans {
		language, _, _ := strings.Cut(strings.TrimSuffix(strings.Fields(sent.sender)[0], ","), " ")
		s := otlptest.Span{Name: sent.name, Kind: sent.kind, Attributes: sent.attributes}
		want, isRenamed := sent.want, sent.want != "" && sent.want != sent.name
		if want == "" {
			want = sent.name
		}
		body := inLanguage(language, otlptest.Span{Name: "GET /first/{id}", Kind: server}, s)
		got := countedOf(t, otel.NewCounter(), body, standard())[1]
		if got.key.Resource != want || got.key.HTTPEndpoint != sent.route || got.Flags&span.Renamed != 0 != isRenamed {
			t.Errorf("%s: the %s span %q is %q of the route %q, renamed %t; want %q of %q", sent.sender, sent.kind, sent.name,
				got.key.Resource, got.key.HTTPEndpoint, got.Flags&span.Renamed != 0, want, sent.route)
		}
		// As sent, neither the name nor the route are derived.
		got = countedOf(t, otel.NewCounter(), body, otel.NewPolicy(otel.Labels{KeepNames: true}))[1]
		hasRoute := false
		for _, a := range sent.attributes {
			hasRoute = hasRoute || a[0] == "http.route"
		}
		if got.key.Resource != sent.name || got.Flags&span.Renamed != 0 || !hasRoute && got.key.HTTPEndpoint != "" {
			t.Errorf("%s, as sent: the span %q is %q of the route %q, flags %b", sent.sender, sent.name, got.key.Resource,
				got.key.HTTPEndpoint, got.Flags)
		}
	}
}

// TestNames_UnknownPathsAreOneSeries: a crawler causes one key and one fingerprint.
func TestNames_UnknownPathsAreOneSeries(t *testing.T) {
	var spans []otlptest.Span
	for i := range 142 {
		path := fmt.Sprint("/nowhere/", i)
		spans = append(spans, otlptest.Span{Name: "GET " + path, Kind: server, Attributes: attributes(
			"http.method", "GET", "http.target", path, "http.status_code", 404,
		)})
	}
	keys, fingerprints, renamed := map[string]bool{}, map[string]bool{}, 0
	for _, s := range countedOf(t, otel.NewCounter(), inLanguage("python", spans...), standard()) {
		keys[string(s.bytes)], fingerprints[s.fingerprint] = true, true
		if s.Flags&span.Renamed != 0 {
			renamed++
		}
	}
	if len(keys) != 1 || len(fingerprints) != 1 || renamed != len(spans) {
		t.Errorf("%d keys, %d fingerprints, %d spans renamed", len(keys), len(fingerprints), renamed)
	}
}

// checkName checks a span that has the name it is counted under: it is counted under that name, byte for
// byte, and not as renamed. It also checks that a name that is not from Go or Zipkin is not the path of the request.
func checkName(t *testing.T, language string, s otlptest.Span) {
	t.Helper()
	c := otel.NewCounter()
	first := countedOf(t, c, inLanguage(language, s), standard())[0]
	name, route := first.key.Resource, first.key.HTTPEndpoint
	if isRenamed := first.Flags&span.Renamed != 0; isRenamed == (name == s.Name) {
		t.Errorf("%q is %q, renamed %t", s.Name, name, isRenamed)
	}
	if len(name) < span.MaxResource {
		s.Name = name
		again := countedOf(t, c, inLanguage(language, s), standard())[0]
		if again.key.Resource != name || again.key.HTTPEndpoint != route || again.Flags&span.Renamed != 0 {
			t.Errorf("%s, %s span with %q: the name %q is conventional, and becomes %q; the route %q becomes %q", language,
				s.Kind, s.Attributes, name, again.key.Resource, route, again.key.HTTPEndpoint)
		}
	}
}

// TestNames_ConventionalOnesAreKept takes random attributes of all conventions, and names that resemble
// their values.
func TestNames_ConventionalOnesAreKept(t *testing.T) {
	rnd := rand.New(rand.NewPCG(48, 1))
	texts := []string{
		"", "GET", "get", "BREW", "_OTHER", "/", "/a/{b}", "/a/7", "/a", "/a%2F7?x", "http://x/a/7", "redis", "aws-api", "select",
		"a.B/c", "a", "execute_tool", "invoke_agent", "invoke_workflow", "retrieval", "SELECT a", "true",
	}
	for range 5_000 {
		s := otlptest.Span{
			Name: strings.TrimSpace(texts[rnd.IntN(len(texts))] + " " + texts[rnd.IntN(len(texts))]), Kind: spantable.Kind(rnd.IntN(6)),
		}
		for range rnd.IntN(7) {
			a := otlptest.Attribute{otel.NameAttributes[rnd.IntN(len(otel.NameAttributes))], texts[rnd.IntN(len(texts))]}
			if rnd.IntN(10) == 0 {
				a[1] = []any{404, true, 1.5}[rnd.IntN(3)]
			}
			s.Attributes = append(s.Attributes, a)
		}
		checkName(t, []string{"go", "python"}[rnd.IntN(2)], s)
	}
}

// FuzzNames checks arbitrary names, paths and methods of HTTP spans.
func FuzzNames(f *testing.F) {
	for _, sent := range sentSpans {
		f.Add(sent.name, "/users/7", "GET", sent.kind == server, true)
	}
	f.Add("GET /a%2", "%2", "get", true, true)
	f.Add("HTTP  /", "%7", "", true, false)
	f.Fuzz(func(t *testing.T, name, path, method string, isServer, isGo bool) {
		if len(name)+len(path)+len(method) > 1000 {
			return
		}
		s := otlptest.Span{
			Name: name, Kind: client,
			Attributes: attributes("http.method", method, "http.target", path, "http.status_code", 200),
		}
		if isServer {
			s.Kind = server
		}
		checkName(t, map[bool]string{true: "go", false: "python"}[isGo], s)
		got := countedOf(t, otel.NewCounter(), inLanguage("python", s), standard())[0]
		if _, rest, _ := strings.Cut(got.key.Resource, " "); method != "" && rest != "" && rest == path {
			t.Errorf("%q of the path %q is %q", name, path, got.key.Resource)
		}
	})
}

// TestNames_NoAllocations: counting allocates nothing once the memory is warm, whether spans are renamed
// or not.
func TestNames_NoAllocations(t *testing.T) {
	var spans []otlptest.Span
	for _, sent := range sentSpans {
		spans = append(spans, otlptest.Span{Name: sent.name, Kind: sent.kind, Attributes: sent.attributes})
	}
	body, c, policy := inLanguage("go", spans...), otel.NewCounter(), standard()
	count := func() {
		if err := c.Count(body, policy); err != nil {
			t.Fatal(err)
		}
	}
	count()
	few := testing.AllocsPerRun(100, count)
	body = inLanguage("go", append(spans, spans...)...)
	count()
	if many := testing.AllocsPerRun(100, count); many > few {
		t.Errorf("%v allocations for %d spans, %v for twice as many", few, len(spans), many)
	}
}

// TestNames_DocumentedVersion: the documentation names the version of the conventions.
func TestNames_DocumentedVersion(t *testing.T) {
	page, err := os.ReadFile("../../../docs/semantics.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "version "+otel.Conventions) {
		t.Errorf("docs/semantics.md does not name version %s", otel.Conventions)
	}
}
