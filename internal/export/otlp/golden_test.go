package otlp

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

var update = flag.Bool("update", false, "rewrite the golden requests")

// golden returns a cycle with every field of an origin and of a key. Its encoding is deterministic:
// integer weights, two drainers, two buckets.
func golden() *testcycle.Cycle {
	c := newCycle()
	full := c.Origin(span.Origin{
		Host: "node-1", Env: "prod", Version: "1.2.3", Service: "shop", Lang: "jvm", LangVersion: "17",
		LangInterpreter:    "OpenJDK",
		TracerVersion:      "1.50.0",
		RuntimeID:          "rid",
		ContainerID:        "cid",
		EntityID:           "in-7",
		ExternalEnv:        "it-false",
		ProcessTags:        "entrypoint.name:shop, entrypoint.type:jar",
		GitCommitSHA:       "abc",
		ObfuscationVersion: "1",
	})
	bare := c.Origin(span.Origin{})
	rich := c.Key(full, span.Key{
		Service: "carts", Operation: "http.request", Resource: "GET /cart", Type: "web", Kind: "client",
		TraceRoot:  span.TraceRootFalse,
		HTTPStatus: 200,
		PeerTags:   []string{"db.instance:carts", "peer.service:db"},
		HTTPMethod: "GET", HTTPEndpoint: "/cart", GRPCStatus: "5", ServiceSource: "m", Synthetics: true,
		AdditionalTags: []string{"tenant:a"},
	})
	plain := c.Key(bare, span.Key{Service: "s", Operation: "o", Resource: "r", TraceRoot: span.TraceRootTrue})
	for drainer := range 2 {
		for i := range 40 {
			c.Add(drainer, rich, time.Second, uint64(time.Millisecond+time.Duration(i)*25*time.Microsecond),
				span.TopLevel, 1)
		}
		c.Add(drainer, rich, time.Second, uint64(9*time.Second), span.Error|span.TopLevel, 1)
	}
	c.Add(0, rich, -time.Second, 0, span.TopLevel, 1)
	c.Add(1, plain, time.Second, uint64(time.Millisecond), span.Error|span.TopLevel, 1)
	c.Add(1, plain, 2*time.Second, uint64(time.Millisecond), 0, 3)
	return c
}

// goldenExemplars are exemplars of the first key: one within the window, and one with a short trace
// ID that ended before.
func goldenExemplars() *exemplars.Table {
	opened := testcycle.Opened
	table := exemplars.New(8)
	put(table, 0, false, exemplars.Exemplar{
		TraceHigh: 0x66f0a9b300000000, TraceLow: 0x0123456789abcdef, Span: 0xfedcba9876543210,
		Duration: uint64(1975 * time.Microsecond), End: opened.Add(time.Second).UnixNano(),
	})
	put(table, 0, true,
		exemplars.Exemplar{
			TraceLow: 7, Span: 8, Duration: uint64(9 * time.Second),
			End: opened.Add(-time.Second).UnixNano(),
		})
	return table
}

// TestGoldenRequests pins the bytes of a request per dialect, and their decoded content, for
// review.
func TestGoldenRequests(t *testing.T) {
	for name, d := range map[string]points.Config{
		"spanmetrics": ofInstance("i-1"), "datadog": asDatadog, "explicit": withBounds(.002, .01, 5),
		"conventions": inDialect(points.Conventions, .002, .01, 5),
	} {
		e := testEncoder(d, "1.2.3", nil)
		e.exemplars = goldenExemplars()
		requests, unencodable := encodeWith(e, golden().Seal(), export.DefaultMaxPayloadBytes)
		if len(requests) != 1 || unencodable != 0 {
			t.Fatalf("%d requests, and %d spans in none", len(requests), unencodable)
		}
		body := requests[0].body
		compareGolden(t, name+".binpb", body)
		compareGolden(t, name+".json", mustRead(t, body).shown(t))
	}
}

// TestGoldenTotals pins the decoded content of running totals after a second cycle without spans.
// The order of series is random, so the bytes are not pinned.
func TestGoldenTotals(t *testing.T) {
	e := testEncoder(ofInstance("i-1"), "1.2.3", &roomForAll)
	encodeWith(e, golden().Seal(), export.DefaultMaxPayloadBytes)
	requests, _ := encodeWith(e, newCycle().Seal(), export.DefaultMaxPayloadBytes)
	r := mustRead(t, requests[0].body)
	for i := range r {
		for _, m := range r[i].Metrics {
			slices.SortFunc(m.Points, func(a, b readPoint) int {
				return strings.Compare(fmt.Sprint(a.Attributes), fmt.Sprint(b.Attributes))
			})
		}
	}
	slices.SortFunc(r, func(a, b readResource) int {
		return strings.Compare(fmt.Sprint(a.Attributes), fmt.Sprint(b.Attributes))
	})
	compareGolden(t, "totals.json", r.shown(t))
}

// TestGoldenGraph pins the decoded content of the service graph's requests. The second cycle has no spans, so the edges
// have the totals of the first one.
func TestGoldenGraph(t *testing.T) {
	graph := newGraphEncoder(&Config{
		Version: "1.2.3", Graph: &points.ServiceGraph{Instance: "i-1"}, Exemplars: goldenExemplars(),
	}, points.EdgeLimits(roomForAll, 10))
	var bodies [][]byte
	for _, c := range []*testcycle.Cycle{golden(), newCycle()} {
		var m export.Merger
		sealed := c.Seal()
		bodies = bodies[:0]
		cycle := &export.Cycle{Sealed: sealed, Rows: m.Merge(sealed), Limit: export.DefaultMaxPayloadBytes}
		graph.encode(cycle, func(r *request) {
			if r.spans > 0 || len(r.undelivered) > 0 {
				t.Errorf("an edge has spans to account for: %d, %d", r.spans, r.undelivered)
			}
			bodies = append(bodies, slices.Clone(r.body))
		})
		m.Forget()
	}
	var requests []readResource
	for _, body := range bodies {
		requests = append(requests, mustRead(t, body)...)
	}
	compareGolden(t, "graph.json", readRequest(requests).shown(t))
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden request: %v; run the test with -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs: %d bytes, want %d; see what -update changes in it", name, len(got), len(want))
	}
}
