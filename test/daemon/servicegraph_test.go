package daemon_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	exporting "github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// call is a connection of the test's services. A client's span has the attributes, and so has a consumer's.
type call struct {
	client, server string // nodes
	kind           int    // kind of the span of the edge: 2 server, 3 client, 4 producer, 5 consumer
	connection     string
	attributes     []string // names and values
	serves         bool     // the server has a span of its own, which must not be counted
}

// topology consists of twelve services that use HTTP, gRPC, SQL, Redis and Kafka.
var topology = []call{
	{client: "user", server: "frontend", kind: 2, connection: "virtual_node"},
	{client: "user", server: "admin", kind: 2, connection: "virtual_node"},
	{client: "frontend", server: "cart", kind: 3, serves: true, attributes: []string{
		"http.request.method", "GET", "server.address", "cart.shop.svc.cluster.local:8080",
	}},
	{client: "frontend", server: "catalog", kind: 3, serves: true, attributes: []string{
		"rpc.system.name", "grpc", "rpc.service", "shop.Catalog", "rpc.method", "List", "server.address", "catalog",
	}},
	{client: "frontend", server: "checkout", kind: 3, serves: true, attributes: []string{
		"http.request.method", "POST", "server.address", "10.0.0.9", "peer.service", "checkout",
	}},
	{client: "admin", server: "catalog", kind: 3, serves: true, attributes: []string{
		"rpc.system", "grpc", "rpc.service", "shop.Catalog", "net.peer.name", "catalog.shop.svc",
	}},
	{client: "cart", server: "cart-cache", kind: 3, connection: "database", attributes: []string{
		"db.system.name", "redis", "db.namespace", "0", "server.address", "cart-cache.shop.svc.cluster.local",
	}},
	{client: "catalog", server: "products", kind: 3, connection: "database", attributes: []string{
		"db.system", "postgresql", "db.name", "products", "net.peer.name", "pg-1",
	}},
	{client: "checkout", server: "payments", kind: 3, serves: true, attributes: []string{
		"http.method", "POST", "server.address", "10.0.0.7",
	}},
	{client: "checkout", server: "shipping", kind: 3, serves: true, attributes: []string{
		"rpc.system.name", "grpc", "rpc.service", "shipping", "server.address", "10.0.0.8",
	}},
	{client: "checkout", server: "orders", kind: 4, connection: "messaging_system", attributes: []string{
		"messaging.system", "kafka", "messaging.destination.name", "orders", "messaging.operation.type", "send",
	}},
	{client: "orders", server: "accounting", kind: 5, connection: "messaging_system", attributes: []string{
		"messaging.system", "kafka", "messaging.destination.name", "orders", "messaging.operation.type", "process",
	}},
	{client: "orders", server: "fraud", kind: 5, connection: "messaging_system", attributes: []string{
		"messaging.system", "kafka", "messaging.destination.name", "orders", "messaging.operation.type", "process",
	}},
	{client: "accounting", server: "ledger", kind: 3, connection: "database", attributes: []string{
		"db.system.name", "mysql", "db.namespace", "ledger", "server.address", "ledger.abc.rds.amazonaws.com",
	}},
	{client: "payments", server: "api.bank.example", kind: 3, attributes: []string{
		"http.request.method", "POST", "server.address", "api.bank.example", "server.port", "443",
	}},
	{client: "shipping", server: "quotes", kind: 3, serves: true, attributes: []string{
		"http.request.method", "GET", "server.address", "quotes:8080",
	}},
	{client: "catalog", server: "recommendations", kind: 3, serves: true, attributes: []string{
		"rpc.system.name", "grpc", "server.address", "recommendations.shop.svc.cluster.local.",
	}},
	{client: "quotes", server: "email", kind: 3, serves: true, attributes: []string{"peer.service", "email"}},
}

// edgeCounts is the truth of one edge.
type edgeCounts struct {
	requests, failed float64
	seconds          float64
}

// TestServiceGraph_EdgeByEdge sends the spans of a topology in random order, and scrapes its edges. Each edge has
// exactly the requests, failures and durations that were sent, although servers have spans of the same requests.
func TestServiceGraph_EdgeByEdge(t *testing.T) {
	t.Parallel()
	p, at := startGraph(t, 200)
	truth := sendTopology(t, at)
	got := scrapeGraph(t, p, 3000)
	compareEdges(t, got, truth)
	p.stop()
}

// TestServiceGraph_WithSampling checks that the edges are as exact if only 1 % of the traces are forwarded.
func TestServiceGraph_WithSampling(t *testing.T) {
	t.Parallel()
	var forwardedBytes atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		forwardedBytes.Add(n)
	}))
	t.Cleanup(upstream.Close)
	p, at := startGraph(t, 200, func(c *daemon.Config) {
		var err error
		if c.OTLP.Forward, err = otlp.ParseCollector(upstream.URL); err != nil {
			t.Fatal(err)
		}
		c.OTLP.Keep = &sampling.Policy{Share: .01}
	})
	truth := sendTopology(t, at)
	got := scrapeGraph(t, p, 3000)
	compareEdges(t, got, truth)
	metrics := scrape(t, "http://"+p.HTTPAddr()+"/metrics")
	p.stop()
	var sampled, sampledOut float64
	for line := range strings.Lines(metrics) {
		_, _ = fmt.Sscanf(line, "spanstatsd_otlp_sampled_spans_total %g", &sampled)
		_, _ = fmt.Sscanf(line, "spanstatsd_otlp_sampled_out_spans_total %g", &sampledOut)
	}
	if sampled == 0 || 20*sampled > sampledOut || forwardedBytes.Load() == 0 {
		t.Errorf("%g spans are forwarded in %d bytes, and %g not", sampled, forwardedBytes.Load(), sampledOut)
	}
}

// TestServiceGraph_OverOTLP exports the same edges as OTLP metrics, next to those of spans with either temporality, to a
// receiver that rejects every third payload. Edges are cumulative in any case, so a rejected payload loses no request,
// and each temporality of the spans' metrics stays.
func TestServiceGraph_OverOTLP(t *testing.T) {
	for _, temporality := range []exporting.Temporality{exporting.Delta, exporting.Cumulative} {
		t.Run(string(temporality), func(t *testing.T) {
			t.Parallel()
			receiver := startGraphReceiver(t)
			var at string
			p := startPair(t, func(c *daemon.Config) {
				at = takesOTLP(c)
				endpoint, err := exporting.ParseEndpoint(receiver.URL)
				if err != nil {
					t.Fatal(err)
				}
				x, err := exporting.New(exporting.Config{
					Variables: exporting.Variables{Endpoint: endpoint}, Temporality: temporality, MaxEdges: 200,
					Graph: &points.ServiceGraph{Names: map[string]string{"10.0.0.7": "payments"}, Instance: "daemon-1"},
				})
				if err != nil {
					t.Fatal(err)
				}
				c.Exporters = []export.Exporter{x.Describe()}
			})
			truth := sendTopology(t, at)
			addEdges(truth, sendTopology(t, at))
			eventually.True(t, "the edges have all requests, after rejected payloads",
				func() bool { return receiver.isComplete(truth) })
			p.stop()
			compareEdges(t, receiver.edges, truth)
			if receiver.rejected == 0 || len(receiver.problems) > 0 {
				t.Errorf("%d payloads rejected, problems %q", receiver.rejected, receiver.problems)
			}
			if want := map[string]uint64{"delta": 1, "cumulative": 2}[string(temporality)]; receiver.temporality != want {
				t.Errorf("the metrics of spans have temporality %d, want %d", receiver.temporality, want)
			}
		})
	}
}

// graphReceiver receives OTLP metrics and keeps the last value of each edge.
type graphReceiver struct {
	*httptest.Server
	mu          sync.Mutex
	edges       map[string]*edgeCounts
	payloads    int
	rejected    int // payloads with edges
	temporality uint64
	problems    []string
}

func startGraphReceiver(t *testing.T) *graphReceiver {
	t.Helper()
	r := &graphReceiver{edges: map[string]*edgeCounts{}}
	r.Server = httptest.NewServer(collector.Handler(r.receive))
	t.Cleanup(r.Close)
	return r
}

func (r *graphReceiver) receive(request collector.Request) (status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isGraph := false
	for _, metric := range request.Metrics() {
		isGraph = isGraph || strings.HasPrefix(metric.Name, "traces_service_graph")
	}
	if isGraph {
		r.payloads++
	}
	if isGraph && r.payloads%3 == 0 {
		r.rejected++
		return http.StatusBadRequest
	}
	for attributes, metric := range request.Metrics() {
		r.record(fmt.Sprint(attributes), *metric)
	}
	return http.StatusOK
}

// record records the points of a metric.
func (r *graphReceiver) record(resource string, m collector.Metric) {
	name, isGraph := strings.CutPrefix(m.Name, "traces_service_graph_request_")
	if !isGraph {
		r.temporality = m.Temporality
		return
	}
	if m.Temporality != 2 || resource != "[{service.name spanstatsd} {service.instance.id daemon-1}]" {
		r.problems = append(r.problems, fmt.Sprintf("%s has temporality %d and the resource %s", m.Name, m.Temporality, resource))
	}
	for _, point := range m.Points {
		labels := map[string]any{"connection_type": ""}
		for _, a := range point.Attributes {
			labels[a.Key] = a.Value
		}
		key := fmt.Sprintf(`client=%q,server=%q,connection_type=%q`, labels["client"], labels["server"], labels["connection_type"])
		edge := r.edges[key]
		if edge == nil {
			edge = &edgeCounts{}
			r.edges[key] = edge
		}
		switch name {
		case "total":
			edge.requests = float64(point.Value)
		case "failed_total":
			edge.failed = float64(point.Value)
		case "client_seconds", "server_seconds":
			edge.seconds = point.Sum
		}
	}
}

// isComplete reports whether the edges have all requests and failures in want, and payloads were rejected before.
func (r *graphReceiver) isComplete(want map[string]*edgeCounts) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, edge := range want {
		got := r.edges[name]
		if got == nil || got.requests != edge.requests || got.failed != edge.failed {
			return false
		}
	}
	return r.rejected > 2
}

// TestServiceGraph_Overflow calls more peers than there may be edges. The first ones keep their edges, and all
// requests are counted.
func TestServiceGraph_Overflow(t *testing.T) {
	t.Parallel()
	const edges, peers = 8, 50
	p, at := startGraph(t, edges)
	rnd := rand.New(rand.NewPCG(48, 3))
	var spans []string
	for i := range peers {
		spans = append(spans, graphSpan(rnd, 3, false, time.Millisecond, false, "server.address", fmt.Sprint("host-", i)))
	}
	post(t, at, "/v1/traces", "application/json",
		[]byte(`{"resourceSpans":[`+resourceSpans("shop", "go", spans...)+`]}`))
	got := scrapeGraph(t, p, peers)
	overflow := got[`client="tracer_blocked_value",server="tracer_blocked_value",connection_type=""`]
	if overflow == nil || overflow.requests != peers-edges || len(got) != edges+1 {
		t.Errorf("%d edges, the overflow edge is %+v", len(got), overflow)
	}
	metrics := scrape(t, "http://"+p.HTTPAddr()+"/metrics")
	for _, want := range []string{
		fmt.Sprintf("spanstatsd_service_graph_edges{destination=\"prometheus\"} %d\n", edges+1),
		fmt.Sprintf("spanstatsd_service_graph_spans_overflowed_total{destination=\"prometheus\"} %d\n", peers-edges),
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not contain %s", want)
		}
	}
	p.stop()
}

// sendTopology sends 3000 requests between the services of the topology, in random order, and returns their edges.
func sendTopology(t *testing.T, at string) (truth map[string]*edgeCounts) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(48, 2))
	truth = map[string]*edgeCounts{}
	spans := map[string][]string{} // by service
	for range 3000 {
		c := &topology[rnd.IntN(len(topology))]
		duration, isError := time.Duration(1+rnd.IntN(2000))*time.Millisecond, rnd.IntN(10) == 0
		owner := c.client
		if c.kind == 2 || c.kind == 5 {
			owner = c.server
		}
		name := fmt.Sprintf(`client=%q,server=%q,connection_type=%q`, c.client, c.server, c.connection)
		edge := truth[name]
		if edge == nil {
			edge = &edgeCounts{}
			truth[name] = edge
		}
		edge.requests++
		edge.seconds += duration.Seconds()
		if isError {
			edge.failed++
		}
		isRoot := c.kind == 2
		spans[owner] = append(spans[owner], graphSpan(rnd, c.kind, isRoot, duration, isError, c.attributes...))
		if c.serves {
			spans[c.server] = append(spans[c.server], graphSpan(rnd, 2, false, duration/2, false,
				"http.request.method", "GET", "server.address", "me", "peer.service", "ignored"))
		}
		spans[owner] = append(spans[owner], graphSpan(rnd, 1, false, duration, false)) // internal
	}
	services := map[string]bool{}
	for service, all := range spans {
		services[service] = true
		post(t, at, "/v1/traces", "application/json",
			[]byte(`{"resourceSpans":[`+resourceSpans(service, "go", all...)+`]}`))
	}
	if len(services) != 12 {
		t.Fatalf("%d services, want 12", len(services))
	}
	return truth
}

// addEdges adds the counts of edges to those in sum.
func addEdges(sum, edges map[string]*edgeCounts) {
	for name, edge := range edges {
		if sum[name] == nil {
			sum[name] = &edgeCounts{}
		}
		sum[name].requests += edge.requests
		sum[name].failed += edge.failed
		sum[name].seconds += edge.seconds
	}
}

// compareEdges checks that the edges are exactly those in truth.
func compareEdges(t *testing.T, got, truth map[string]*edgeCounts) {
	t.Helper()
	for name, want := range truth {
		edge := got[name]
		if edge == nil {
			t.Errorf("no edge %s", name)
			continue
		}
		if edge.requests != want.requests || edge.failed != want.failed ||
			math.Abs(edge.seconds-want.seconds) > 1e-2*want.seconds {
			t.Errorf("%s: %+v, want %+v", name, *edge, *want)
		}
	}
	for name := range got {
		if truth[name] == nil {
			t.Errorf("edge %s was not sent", name)
		}
	}
}

// TestServiceGraph_Flood calls a new address with each of many requests, next to the requests of the topology. The edges
// of the topology keep all of their requests, and the others are counted in edges to a collapsed node or in the overflow
// edge.
func TestServiceGraph_Flood(t *testing.T) {
	t.Parallel()
	p, at := startGraph(t, 100)
	rnd := rand.New(rand.NewPCG(48, 4))
	truth := sendTopology(t, at)
	total := 3000.0
	for range 5 {
		scrapeGraph(t, p, total) // the requests so far belong to earlier intervals
		var spans []string
		for range 2000 {
			spans = append(spans, graphSpan(rnd, 3, false, time.Millisecond, false,
				"http.request.method", "GET", "server.address", fmt.Sprintf("%x.flood.example", rnd.Uint64())))
		}
		post(t, at, "/v1/traces", "application/json",
			[]byte(`{"resourceSpans":[`+resourceSpans("crawler", "go", spans...)+`]}`))
		addEdges(truth, sendTopology(t, at))
		total += 5000
	}
	got := scrapeGraph(t, p, total)
	p.stop()
	flooded := 0.0
	for name, edge := range got {
		if isFlood := strings.Contains(name, "flood.example") || strings.Contains(name, "tracer_blocked_value"); isFlood {
			flooded += edge.requests
			delete(got, name)
		}
	}
	compareEdges(t, got, truth)
	if flooded != 10_000 {
		t.Errorf("the flood has %v requests, want 10000", flooded)
	}
}

// startGraph starts a daemon with a service graph. The edits change its configuration.
func startGraph(t *testing.T, maxEdges int, edits ...func(*daemon.Config)) (p *pair, at string) {
	t.Helper()
	p = startPair(t, func(c *daemon.Config) {
		at = takesOTLP(c)
		for _, edit := range edits {
			edit(c)
		}
		c.Prometheus = prometheus.New(prometheus.Config{
			URL: prometheus.Path, MaxEdges: maxEdges, Bounds: []float64{.1, 1},
			Graph: &points.ServiceGraph{Names: map[string]string{"10.0.0.7": "payments"}},
		})
	})
	return p, at
}

// scrapeGraph scrapes until the edges have the given number of requests, and returns them by their labels.
func scrapeGraph(t *testing.T, p *pair, requests float64) map[string]*edgeCounts {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(scrape(t, "http://"+p.HTTPAddr()+prometheus.Path)))
		if err != nil {
			t.Fatal(err)
		}
		sum, edges := 0.0, map[string]*edgeCounts{}
		for _, name := range []string{"request_total", "request_failed_total", "request_client_seconds", "request_server_seconds"} {
			for _, m := range families["traces_service_graph_"+name].GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				key := fmt.Sprintf(`client=%q,server=%q,connection_type=%q`, labels["client"], labels["server"], labels["connection_type"])
				if edges[key] == nil {
					edges[key] = &edgeCounts{}
				}
				switch name {
				case "request_total":
					edges[key].requests = m.GetCounter().GetValue()
					sum += edges[key].requests
				case "request_failed_total":
					edges[key].failed = m.GetCounter().GetValue()
				case "request_client_seconds":
					edges[key].seconds = m.GetHistogram().GetSampleSum()
				case "request_server_seconds":
					if got := m.GetHistogram().GetSampleSum(); got != edges[key].seconds {
						t.Errorf("%s: %v seconds at the server, %v at the client", key, got, edges[key].seconds)
					}
				}
			}
		}
		if sum >= requests || time.Now().After(deadline) {
			return edges
		}
	}
}

// graphSpan returns a span in JSON.
func graphSpan(rnd *rand.Rand, kind int, isRoot bool, duration time.Duration, isError bool, attributes ...string) string {
	var all []string
	for i := 0; i < len(attributes); i += 2 {
		all = append(all, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, attributes[i], attributes[i+1]))
	}
	id := binary.BigEndian.AppendUint64(nil, rnd.Uint64()|1)
	parent, status := `"parentSpanId":"0102030405060708",`, 0
	if isRoot {
		parent = ""
	}
	if isError {
		status = 2
	}
	end := time.Now().UnixNano()
	return fmt.Sprintf(`{"traceId":"01020304050607080%015x","spanId":"%x",%s"name":"call","kind":%d,"status":{"code":%d},`+
		`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`,
		rnd.Uint64()>>4, id, parent, kind, status, end-int64(duration), end, strings.Join(all, ","))
}
