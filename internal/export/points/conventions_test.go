package points

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/semconv"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// sdk is the origin of spans from OpenTelemetry's SDKs.
var sdk = span.Origin{Service: "shop", Env: "prod", TracerVersion: span.OTLPVersion + "1.40.0"}

// spansOf are spans with the same key.
type spansOf struct {
	key           span.Key
	spans, failed int
}

// readSeries returns the series that the dialect conventions has for spans, as "calls metric{name=value,...}", sorted.
// It fails if a series occurs twice.
func readSeries(t *testing.T, dimensions string, all ...spansOf) (series []string) {
	t.Helper()
	return readMeasured(t, dimensions, nil, all...)
}

// readMeasured is like readSeries, with measures.
func readMeasured(t *testing.T, dimensions string, measures []measure.Measure, all ...spansOf) (series []string) {
	t.Helper()
	parsed, err := ParseDimensions(dimensions)
	if err != nil {
		t.Fatal(err)
	}
	c := newCycle()
	origin := c.Origin(sdk)
	for _, s := range all {
		key := c.Key(origin, s.key)
		for i := range s.spans {
			flags := span.Flags(0)
			if i < s.failed {
				flags = span.Error
			}
			c.Add(0, key, 0, 1000, flags, 1)
		}
	}
	r := NewReader(Config{Dialect: Conventions, Dimensions: parsed, Labels: true, Measures: measures})
	r.BeginCycle(exemplars.Sealed{}, 0, 1)
	sealed := c.Seal()
	var m export.Merger
	rows := m.Merge(sealed)
	seen := map[string]bool{}
	for _, g := range r.GroupRows(sealed, rows) {
		sum := r.SumRows(rows, g)
		r.VisitPoints(sealed, rows, g, &sum, func(p *Point) {
			var labels []string
			for name, value := range Labels(string(p.Attributes)) {
				labels = append(labels, name+"="+value)
			}
			name := fmt.Sprintf("%s{%s}", r.Metrics()[p.Metric].Durations, strings.Join(labels, ","))
			if seen[name] {
				t.Errorf("%s occurs twice", name)
			}
			seen[name] = true
			if p.Calls != p.Durations.Spans {
				t.Errorf("%s has %d calls and %d durations", name, p.Calls, p.Durations.Spans)
			}
			series = append(series, fmt.Sprintf("%d %s", p.Calls, name))
		})
	}
	slices.Sort(series)
	return series
}

func newCycle() *testcycle.Cycle { return &testcycle.Cycle{Grid: sketch.CommonGrid()} }

func httpKey(kind, method, route string, status uint32, tags ...string) span.Key {
	return span.Key{
		Service: "shop", Operation: "http." + kind + ".request", Resource: method + " " + route, Kind: kind,
		HTTPMethod: method, HTTPEndpoint: route, HTTPStatus: status, PeerTags: tags,
	}
}

func rpcKey(kind, status string, tags ...string) span.Key {
	return span.Key{
		Service: "shop", Operation: "grpc." + kind + ".request", Resource: "shop.Carts/Get", Kind: kind, GRPCStatus: status,
		PeerTags: append([]string{"rpc.method:Get", "rpc.service:shop.Carts", "rpc.system.name:grpc"}, tags...),
	}
}

func messageKey(kind string, tags ...string) span.Key {
	return span.Key{
		Service: "shop", Operation: "kafka", Resource: "orders", Kind: kind,
		PeerTags: append([]string{"messaging.destination.name:orders", "messaging.system:kafka"}, tags...),
	}
}

// TestConventions_SeriesOfSpans lists the series of spans of each kind of work.
func TestConventions_SeriesOfSpans(t *testing.T) {
	const server, client = "http_server_request_duration_seconds", "http_client_request_duration_seconds"
	for title, test := range map[string]struct {
		spans []spansOf
		want  []string
	}{
		"a server": {
			[]spansOf{{httpKey("server", "GET", "/cart", 200, "url.scheme:http", "network.protocol.version:1.1",
				"network.protocol.name:http", "server.port:80", "tenant:a"), 3, 0}},
			[]string{"3 " + server + "{http_request_method=GET,url_scheme=http,http_response_status_code=200," +
				"http_route=/cart,network_protocol_version=1.1}"},
		},
		"versions of HTTP in older conventions": {
			[]spansOf{
				{httpKey("client", "GET", "", 0, "network.protocol.version:2.0"), 1, 0},
				{httpKey("client", "GET", "", 0, "network.protocol.version:2"), 1, 0},
				{httpKey("client", "GET", "", 0, "network.protocol.version:1.0"), 1, 0},
			},
			[]string{
				"1 " + client + "{http_request_method=GET,network_protocol_version=1.0}",
				"2 " + client + "{http_request_method=GET,network_protocol_version=2}",
			},
		},
		"a status that is an error of a server": {
			[]spansOf{{httpKey("server", "GET", "/", 503), 2, 2}, {httpKey("server", "GET", "/", 404), 2, 0}},
			[]string{
				"2 " + server + "{http_request_method=GET,http_response_status_code=404,http_route=/}",
				"2 " + server + "{http_request_method=GET,http_response_status_code=503,http_route=/,error_type=503}",
			},
		},
		"a status that is an error of a client, whatever the status of the span": {
			[]spansOf{{httpKey("client", "GET", "", 404, "server.address:pay", "server.port:8080"), 3, 1}},
			[]string{"3 " + client + "{http_request_method=GET,server_address=pay,server_port=8080," +
				"http_response_status_code=404,error_type=404}"},
		},
		"an exception": {
			[]spansOf{{httpKey("server", "GET", "/", 500, "error.type:ValueError"), 1, 1}},
			[]string{"1 " + server + "{http_request_method=GET,http_response_status_code=500,http_route=/," +
				"error_type=ValueError}"},
		},
		"errors without and with the default type": {
			[]spansOf{{httpKey("client", "GET", "", 0), 3, 2}, {httpKey("client", "GET", "", 0, "error.type:_OTHER"), 1, 1}},
			[]string{
				"1 " + client + "{http_request_method=GET}", "3 " + client + "{http_request_method=GET,error_type=_OTHER}",
			},
		},
		"methods that the conventions do not know": {
			[]spansOf{
				{httpKey("server", "BREW", "/", 0), 1, 0},
				{httpKey("server", "_OTHER", "/", 0), 1, 0},
				{httpKey("server", "get", "/", 0), 1, 0},
			},
			[]string{
				"1 " + server + "{http_request_method=GET,http_route=/}",
				"2 " + server + "{http_request_method=_OTHER,http_route=/}",
			},
		},
		"a gRPC server, for which NOT_FOUND is no error": {
			[]spansOf{{rpcKey("server", "5"), 2, 0}, {rpcKey("server", "13"), 1, 1}},
			[]string{
				"1 rpc_server_call_duration_seconds{rpc_system_name=grpc,rpc_method=shop.Carts/Get," +
					"rpc_response_status_code=INTERNAL,error_type=INTERNAL}",
				"2 rpc_server_call_duration_seconds{rpc_system_name=grpc,rpc_method=shop.Carts/Get," +
					"rpc_response_status_code=NOT_FOUND}",
			},
		},
		"a gRPC client with the attributes of older conventions": {
			[]spansOf{{rpcKey("client", "5", "server.address:carts", "server.port:9090"), 1, 1}},
			[]string{"1 rpc_client_call_duration_seconds{rpc_system_name=grpc,rpc_method=shop.Carts/Get," +
				"rpc_response_status_code=NOT_FOUND,server_address=carts,server_port=9090,error_type=NOT_FOUND}"},
		},
		"a call of another RPC system": {
			[]spansOf{{span.Key{Service: "shop", Resource: "r", Kind: "client", PeerTags: []string{
				"rpc.method:shop.Carts/Get", "rpc.response.status_code:not_found", "rpc.system.name:connectrpc",
			}}, 1, 0}},
			[]string{"1 rpc_client_call_duration_seconds{rpc_system_name=connectrpc,rpc_method=shop.Carts/Get," +
				"rpc_response_status_code=not_found}"},
		},
		"a database over HTTP": {
			[]spansOf{{httpKey("client", "POST", "", 0, "db.system.name:elasticsearch", "db.operation.name:search",
				"server.address:es", "server.port:9200", "network.peer.port:9200"), 1, 1}},
			[]string{"1 db_client_operation_duration_seconds{db_system_name=elasticsearch,db_operation_name=search," +
				"server_port=9200,network_peer_port=9200,server_address=es,error_type=_OTHER}"},
		},
		"a database that reports a status": {
			[]spansOf{{span.Key{Service: "shop", Resource: "r", Kind: "client", PeerTags: []string{
				"db.query.summary:SELECT carts", "db.response.status_code:08P01", "db.system.name:postgresql",
			}}, 1, 1}},
			[]string{"1 db_client_operation_duration_seconds{db_system_name=postgresql,db_response_status_code=08P01," +
				"db_query_summary=SELECT carts,error_type=08P01}"},
		},
		"calls that a tracer of Datadog has measured": {
			[]spansOf{
				{span.Key{
					Service: "shop", Operation: "redis.command", Type: "redis", Resource: "GET", Kind: "client",
					PeerTags: []string{"db.system:redis", "out.host:cache"},
				}, 1, 0},
				{span.Key{
					Service: "shop", Operation: "grpc.client", Type: "grpc", Resource: "/a/B", Kind: "client",
					GRPCStatus: "0", PeerTags: []string{"rpc.service:a", "rpc.system:grpc"},
				}, 2, 0},
			},
			[]string{
				"1 db_client_operation_duration_seconds{db_system_name=redis}",
				"2 rpc_client_call_duration_seconds{rpc_system_name=grpc,rpc_response_status_code=OK}",
			},
		},
		"messages": {
			[]spansOf{
				{messageKey("producer", "messaging.operation.name:publish", "messaging.operation.type:send"), 1, 0},
				{messageKey("consumer", "messaging.operation.type:process"), 2, 0},
				{messageKey("client", "messaging.operation.name:poll", "messaging.operation.type:receive"), 3, 0},
				{messageKey("producer"), 4, 0},
				{messageKey("consumer", "messaging.operation.type:deliver"), 5, 0},
			},
			[]string{
				"1 messaging_client_operation_duration_seconds{messaging_operation_name=publish,messaging_system=kafka," +
					"messaging_destination_name=orders,messaging_operation_type=send}",
				"2 messaging_process_duration_seconds{messaging_operation_name=process,messaging_system=kafka," +
					"messaging_destination_name=orders}",
				"3 messaging_client_operation_duration_seconds{messaging_operation_name=poll,messaging_system=kafka," +
					"messaging_destination_name=orders,messaging_operation_type=receive}",
				"4 messaging_client_operation_duration_seconds{messaging_system=kafka,messaging_destination_name=orders}",
				"5 messaging_process_duration_seconds{messaging_operation_name=deliver,messaging_system=kafka," +
					"messaging_destination_name=orders}",
			},
		},
		"a model": {
			[]spansOf{{httpKey("client", "POST", "", 200, "gen_ai.operation.name:chat", "gen_ai.provider.name:openai",
				"gen_ai.request.model:gpt-5", "gen_ai.response.model:gpt-5-mini"), 1, 0}},
			[]string{"1 gen_ai_client_operation_duration_seconds{gen_ai_operation_name=chat,gen_ai_provider_name=openai," +
				"gen_ai_request_model=gpt-5,gen_ai_response_model=gpt-5-mini}"},
		},
		"spans without a metric of their own": {
			[]spansOf{{span.Key{Service: "shop", Operation: "Internal", Resource: "price", Kind: "internal"}, 5, 1}},
			[]string{
				"1 traces_span_metrics_duration_seconds{service_name=shop,span_name=price,span_kind=SPAN_KIND_INTERNAL," +
					"status_code=STATUS_CODE_ERROR}",
				"4 traces_span_metrics_duration_seconds{service_name=shop,span_name=price,span_kind=SPAN_KIND_INTERNAL," +
					"status_code=STATUS_CODE_UNSET}",
			},
		},
	} {
		if got := readSeries(t, AllDimensions, test.spans...); !slices.Equal(got, test.want) {
			t.Errorf("%s has the series\n%s\nwant\n%s", title, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// TestConventions_Dimensions adds and removes attributes of a metric.
func TestConventions_Dimensions(t *testing.T) {
	key := httpKey("server", "GET", "/", 500, "url.scheme:http", "tenant:a", "server.address:shop.example")
	for dimensions, want := range map[string]string{
		"all,tenant": "{http_request_method=GET,url_scheme=http,http_response_status_code=500,http_route=/,tenant=a," +
			"error_type=500}",
		"all,-url.scheme,-error.type,-http.route": "{http_request_method=GET,http_response_status_code=500}",
		"http.route,http.method,service.name,deployment.environment.name": "{http_route=/,http_method=GET," +
			"deployment_environment_name=prod}",
		"none": "{}",
	} {
		got := readSeries(t, dimensions, spansOf{key, 2, 1})
		if want := []string{"2 http_server_request_duration_seconds" + want}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dimensions, got, want)
		}
	}
}

// TestConventions_MeasureOfSameName checks that a measure with the name of a metric replaces it, so that no call of a
// model is in the metric twice. The span itself is then in the metrics of other spans.
func TestConventions_MeasureOfSameName(t *testing.T) {
	measures, err := measure.Parse("gen_ai")
	if err != nil {
		t.Fatal(err)
	}
	isDuration := func(m measure.Measure) bool { return m.IsDuration() }
	key := httpKey("client", "POST", "", 0, "gen_ai.operation.name:chat")
	value := key
	value.Measure = span.Measure(slices.IndexFunc(measures, isDuration) + 1)
	got := readMeasured(t, "http.request.method", measures, spansOf{key, 3, 0}, spansOf{value, 3, 0})
	want := []string{
		"3 gen_ai_client_operation_duration_seconds{service_name=shop,gen_ai_operation_name=chat}",
		"3 traces_span_metrics_duration_seconds{service_name=shop,span_name=POST ,span_kind=SPAN_KIND_CLIENT," +
			"http_request_method=POST,status_code=STATUS_CODE_UNSET}",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestConventions_MeasureOfSameNameInPrometheus checks that durations of spans are not added to values, if the names of
// the metrics differ only in characters that Prometheus replaces.
func TestConventions_MeasureOfSameNameInPrometheus(t *testing.T) {
	measures, err := measure.Parse("http_server_request_duration=wait,s")
	if err != nil {
		t.Fatal(err)
	}
	got := readMeasured(t, "none", measures, spansOf{httpKey("server", "GET", "/", 200), 3, 0})
	if len(got) != 1 || !strings.Contains(got[0], "traces_span_metrics_duration_seconds") {
		t.Errorf("%q", got)
	}
}

// TestConventions_CountEachSpanOnce counts random spans: no series occurs twice in a cycle, and the calls of all series
// add up to the number of spans.
func TestConventions_CountEachSpanOnce(t *testing.T) {
	values := map[string][]string{
		"error.type": {"", "_OTHER", "500", "timeout", "NOT_FOUND"}, "rpc.system.name": {"", "grpc"},
		"db.system.name": {"", "redis"}, "db.response.status_code": {"", "timeout"},
		"messaging.system": {"", "kafka"}, "messaging.operation.type": {"", "process", "send"},
		"gen_ai.operation.name": {"", "chat"}, "rpc.response.status_code": {"", "NOT_FOUND"},
	}
	kinds := []string{"server", "client", "producer", "consumer", "internal", "unspecified"}
	metrics := map[string]bool{}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		byKey := map[string]spansOf{}
		total := 0
		for range 40 {
			key := httpKey(kinds[rnd.IntN(len(kinds))], []string{"", "GET", "BREW"}[rnd.IntN(3)], "",
				[]uint32{0, 200, 404, 500}[rnd.IntN(4)])
			key.GRPCStatus = []string{"", "0", "5"}[rnd.IntN(3)]
			for name, choices := range values {
				if value := choices[rnd.IntN(len(choices))]; value != "" {
					key.PeerTags = append(key.PeerTags, name+":"+value)
				}
			}
			slices.Sort(key.PeerTags)
			s := byKey[fmt.Sprint(key)]
			s.key = key
			spans := 1 + rnd.IntN(4)
			s.spans += spans
			s.failed += rnd.IntN(spans + 1)
			total += spans
			byKey[fmt.Sprint(key)] = s
		}
		var all []spansOf
		for _, s := range byKey {
			all = append(all, s)
		}
		counted := 0
		for _, series := range readSeries(t, []string{AllDimensions, "all,-error.type", "none"}[seed%3], all...) {
			calls, name, _ := strings.Cut(series, " ")
			var n int
			_, _ = fmt.Sscan(calls, &n)
			counted += n
			metric, _, _ := strings.Cut(name, "{")
			metrics[metric] = true
		}
		if counted != total {
			t.Fatalf("seed %d: %d of %d spans are counted", seed, counted, total)
		}
	}
	if want := len(semconv.Metrics) + 1; len(metrics) != want {
		t.Errorf("the spans have the metrics %v, want %d", metrics, want)
	}
}
