package daemon_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	exporting "github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
	"google.golang.org/protobuf/encoding/protowire"
)

// exported returns an OTLP request with the given number of spans of one name.
func exported(spans int, name string) []byte {
	nested := func(b []byte, n protowire.Number, message []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
	}
	var scope []byte
	for i := range spans {
		id := protowire.AppendFixed64(nil, uint64(i+1))
		scope = nested(scope, 2, nested(nested(nested(nil, 1, append(make([]byte, 8), id...)), 2, id), 5,
			[]byte(name)))
	}
	return nested(nil, 1, nested(nil, 2, scope))
}

// takesOTLP configures an OTLP socket.
func takesOTLP(c *daemon.Config) (at string) {
	c.OTLP.Socket.Path = c.Ingest.Socket.Path + "o"
	return c.OTLP.Socket.Path
}

// exportSpans sends a request, which must be accepted.
func exportSpans(t *testing.T, socket string, body []byte) {
	t.Helper()
	post(t, socket, "/v1/traces", "application/x-protobuf", body)
}

// TestOTLP_SpansReachAgent checks the agent and the accounting.
func TestOTLP_SpansReachAgent(t *testing.T) {
	var at string
	p := startPair(t, func(c *daemon.Config) { at = takesOTLP(c) })
	for range 10 {
		exportSpans(t, at, exported(20, "work"))
	}
	if got := p.Status().Receivers["otlp"]; got == nil || got.Requests["counted"] == 0 {
		t.Errorf("the status has %+v", got)
	}
	p.stop()
	accounting := p.Daemon.Accounting()
	if counted := p.Status().Receivers["otlp"].Requests; accounting.Received != 20*counted["counted"] || !accounting.Balanced ||
		accounting.Flushed != accounting.Received || counted["counted"]+counted["duplicate"] != 10 {
		t.Errorf("accounting %+v, requests %v", accounting, counted)
	}
}

// TestOTLP_ForwardedSpansAreExemplars checks that forwarded spans are exemplars, with their IDs, in
// exported OTLP metrics.
func TestOTLP_ForwardedSpansAreExemplars(t *testing.T) {
	var mu sync.Mutex
	found := map[string]bool{}
	stand, err := collector.Start(collector.Config{OnRequest: func(r collector.Request) {
		mu.Lock()
		defer mu.Unlock()
		for i := range r {
			for _, scope := range r[i].Scopes { // a probe has no scopes
				for _, m := range scope.Metrics {
					for _, p := range m.Points {
						for _, x := range p.Exemplars {
							found[fmt.Sprintf("%x %x", x.Trace, x.Span)] = true
						}
					}
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stand.Close() })
	traceBackend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(traceBackend.Close)
	var at string
	p := startPair(t, func(c *daemon.Config) {
		endpoint, err := exporting.ParseEndpoint(stand.URL())
		if err != nil {
			t.Fatal(err)
		}
		dimensions, err := points.ParseDimensions(points.AllDimensions)
		if err != nil {
			t.Fatal(err)
		}
		c.Exemplars = exemplars.New(8)
		x, err := exporting.New(exporting.Config{
			Variables:  exporting.Variables{Endpoint: endpoint},
			Dimensions: dimensions, Exemplars: c.Exemplars,
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Exporters, at = []export.Exporter{x.Describe()}, takesOTLP(c)
		if c.OTLP.Forward, err = otlp.ParseCollector(traceBackend.URL); err != nil {
			t.Fatal(err)
		}
		neverEnd(&c.Aggregate)
	})
	exportSpans(t, at, exported(1, "work"))
	p.stop()
	if totals := stand.Totals(); totals.ProblemCount != 0 {
		t.Errorf("the collector found %q", totals.Problems)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := "00000000000000000100000000000000 0100000000000000"; !found[want] || len(found) != 1 {
		t.Errorf("exemplars %v, want %s", found, want)
	}
}
