package fleet

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// TestConnector_SameCounts checks that the collector's spanmetrics connector and the daemon make
// the same series, counts and buckets of the same spans. The connector gets each span as the
// collector's Datadog receiver would convert it, with the same name, kind and attributes. (The receiver
// is not published as a module.) Two differences are removed beforehand: durations are not changed by
// truncation, and spans without an error have status Unset, as sent by OpenTelemetry SDKs, while that
// receiver sets Ok.
func TestConnector_SameCounts(t *testing.T) {
	for name, dimensions := range map[string]string{
		"as it comes": "",
		"with dimensions": "http.request.method,http.route,http.response.status_code," +
			"rpc.grpc.status_code,peer.service",
	} {
		t.Run(name, func(t *testing.T) {
			theirs, ours := startReceiver(t), startReceiver(t)
			connector := startConnector(t, theirs, dimensions)
			d := startDaemon(t, "node-1", 1, "--otlp-metrics-endpoint", ours.url()+"/v1/metrics",
				"--otlp-dimensions", orNone(dimensions))
			r := rand.New(rand.NewPCG(22, 2))
			const batches = 40
			spans := uint64(0)
			for range batches {
				batch := convertedSpans(r, 250)
				spans += uint64(len(batch))
				for i := range batch {
					batch[i].snapshot.Key.Service = "shop-0"
					if !d.clients[0].Publish([]client.Snapshot{batch[i].snapshot}) {
						t.Fatalf("the client refused a span: %+v", d.clients[0].Stats())
					}
				}
				connector.post(t, batch)
			}
			d.hands(t)
			eventually.True(t, "the daemon has delivered", func() bool { return ours.taken() == spans })
			eventually.True(t, "the connector has delivered", func() bool { return theirs.taken() == spans })
			mustBeSame(t, theirs.points, ours.points)
			t.Logf("%d spans in %d series of two metrics", spans, len(ours.points)/2)
		})
	}
}

func orNone(dimensions string) string {
	if dimensions == "" {
		return "none"
	}
	return dimensions
}

func mustBeSame(t *testing.T, theirs, ours map[string]*distribution) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if ours[name] == nil {
			t.Errorf("only the connector has %s", name)
		} else if differs := theirs[name].differs(ours[name]); differs != "" {
			t.Errorf("%s: the connector and the daemon have %s", name, differs)
		} else if fits := min(theirs[name].fitting(mostBuckets), oracleScale); ours[name].scale < fits {
			t.Errorf("%s: the daemon has scale %d, though %d fits", name, ours[name].scale, fits)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if theirs[name] == nil {
			t.Errorf("only the daemon has %s", name)
		}
	}
}

// converted is a span in two forms: as published by a tracer to the daemon, and as converted by the
// collector's receiver from the same tracer's trace.
type converted struct {
	snapshot   client.Snapshot
	name       string
	kind       ptrace.SpanKind
	attributes map[string]string
}

// convertedSpans returns random spans of the types for which the receiver derives a name or kind.
func convertedSpans(r *rand.Rand, n int) (spans []converted) {
	for range n {
		s := conversions[r.IntN(len(conversions))]
		s.snapshot.Duration = cut(time.Duration(float64(time.Microsecond) * (1 +
			1e6*r.ExpFloat64()*r.Float64())))
		s.snapshot.End = time.Now()
		s.snapshot.TopLevel = true
		s.snapshot.Error = r.IntN(5) == 0
		spans = append(spans, s)
	}
	return spans
}

// conversions lists the receiver's conversion rules. HTTP requests, gRPC calls and Spring handlers get
// special names, other spans that of their operation. The span type determines a missing span kind.
var conversions = []converted{
	{
		client.Snapshot{Key: client.Key{
			Operation: "http.request", Resource: "GET /cart", Type: "web", Kind: "server",
			HTTPMethod: "GET", HTTPEndpoint: "/cart", HTTPStatus: 200,
		}},
		"GET /cart", ptrace.SpanKindServer,
		map[string]string{
			"http.request.method": "GET", "http.route": "/cart",
			"http.response.status_code": "200",
		},
	},
	{
		client.Snapshot{Key: client.Key{
			Operation: "servlet.request", Resource: "POST /orders/{id}", Type: "web", Kind: "server",
			HTTPMethod: "POST", HTTPEndpoint: "/orders/{id}", HTTPStatus: 503,
		}},
		"POST /orders/{id}", ptrace.SpanKindServer,
		map[string]string{
			"http.request.method": "POST", "http.route": "/orders/{id}",
			"http.response.status_code": "503",
		},
	},
	{
		client.Snapshot{Key: client.Key{Operation: "spring.handler", Resource: "Shop.cart", Type: "web"}},
		"Shop.cart", ptrace.SpanKindInternal, nil,
	},
	{
		client.Snapshot{Key: client.Key{
			Operation: "grpc.client", Resource: "/shop.Carts/Get", Type: "rpc",
			Kind: "client", GRPCStatus: "14",
		}},
		"shop.Carts/Get", ptrace.SpanKindClient,
		map[string]string{"rpc.grpc.status_code": "14"},
	},
	{
		client.Snapshot{Key: client.Key{
			Operation: "sql.query", Resource: "SELECT carts", Type: "sql", Kind: "client",
			PeerTags: []string{"peer.service:carts-db"},
		}},
		"sql.query", ptrace.SpanKindClient,
		map[string]string{"peer.service": "carts-db"},
	},
	{
		client.Snapshot{Key: client.Key{
			Operation: "kafka.consume", Resource: "orders", Type: "queue",
			Kind: "consumer",
		}},
		"kafka.consume", ptrace.SpanKindConsumer, nil,
	},
	{
		client.Snapshot{Key: client.Key{Operation: "job.run", Resource: "sweep", Kind: "internal"}},
		"job.run", ptrace.SpanKindInternal, nil,
	},
}

// connector is a collector with the spanmetrics connector.
type connector struct {
	*process
	url string
}

func startConnector(t *testing.T, to *receiver, dimensions string) *connector {
	t.Helper()
	config, err := filepath.Abs("config/spanmetrics.yaml")
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	c := &connector{url: "http://" + address}
	c.process = start(t, "connector", []string{
		"LISTEN=" + address, "METRICS_URL=" + to.url(), "DIMENSIONS=" + dimensionList(dimensions),
	}, program(t, "collector"), "--config", config)
	c.listens(address)
	return c
}

// dimensionList converts comma-separated names to the connector's configuration format.
func dimensionList(names string) string {
	var list bytes.Buffer
	for _, name := range bytes.FieldsFunc([]byte(names), func(r rune) bool { return r == ',' }) {
		fmt.Fprintf(&list, "{name: %s}, ", name)
	}
	return "[" + list.String() + "]"
}

// post sends spans to the connector over OTLP.
func (c *connector) post(t *testing.T, spans []converted) {
	t.Helper()
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "shop-0")
	scope := resource.ScopeSpans().AppendEmpty()
	for i, s := range spans {
		span := scope.Spans().AppendEmpty()
		span.SetName(s.name)
		span.SetKind(s.kind)
		span.SetTraceID(pcommon.TraceID{15: byte(i + 1)})
		span.SetSpanID(pcommon.SpanID{7: byte(i + 1)})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(s.snapshot.End.Add(-s.snapshot.Duration)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(s.snapshot.End))
		if s.snapshot.Error {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
		for name, value := range s.attributes {
			if number, err := strconv.Atoi(value); err == nil {
				span.Attributes().PutInt(name, int64(number))
			} else {
				span.Attributes().PutStr(name, value)
			}
		}
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(c.url+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the connector answers %s", response.Status)
	}
}
