package prometheus

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
	"google.golang.org/protobuf/encoding/protojson"
)

var update = flag.Bool("update", false, "rewrite the golden answers")

// golden returns a cycle of a Datadog tracer and of an SDK with a deterministic encoding.
func golden(t testing.TB) *testcycle.Cycle {
	t.Helper()
	c := newCycle(t)
	tracer := c.Origin(span.Origin{
		Service: "shop", Host: "node-1", Env: "prod", Lang: "jvm",
		RuntimeID: "rid",
	})
	sdk := c.Origin(span.Origin{Service: "cart", TracerVersion: "otlp-1.52.0"})
	get := c.Key(tracer, span.Key{
		Service:        "shop",
		Operation:      "http.request",
		Resource:       "GET /cart",
		Type:           "web",
		Kind:           "server",
		HTTPStatus:     200,
		HTTPMethod:     "GET",
		HTTPEndpoint:   "/cart",
		PeerTags:       []string{"peer.service:db"},
		AdditionalTags: []string{"tenant:a"},
	})
	checkout := c.Key(sdk,
		span.Key{
			Service: "cart", Operation: "checkout", Resource: "checkout", Kind: "client",
			AdditionalTags: []string{span.StatusOK},
		})
	for i := range 40 {
		c.Add(0, get, time.Second, uint64(time.Millisecond+time.Duration(i)*25*time.Microsecond),
			span.TopLevel, 1)
	}
	c.Add(0, get, time.Second, uint64(12*time.Second), span.Error|span.TopLevel, 1)
	c.Add(0, checkout, time.Second, uint64(250*time.Millisecond), 0, 1)
	c.Add(0, checkout, time.Second, 0, 0, 3)
	return c
}

// put adds a span as an exemplar of a key.
func put(to *exemplars.Table, cycle uint64, key registry.KeyID, isError bool, e exemplars.Exemplar) {
	one := exemplars.Span{Exemplar: e, Cycle: cycle, Key: uint32(key), IsError: isError}
	to.Offer(slices.Values([]exemplars.Span{one}))
}

// goldenExporter returns an exporter after the golden cycle, with an exemplar in a bucket and one
// above all bounds.
func goldenExporter(t testing.TB, dialect points.Dialect, graph *points.ServiceGraph) *Exporter {
	t.Helper()
	table := exemplars.New(8)
	put(table, 1, 0, false, exemplars.Exemplar{
		TraceHigh: 0x66f0a9b300000000, TraceLow: 0x0123456789abcdef, Span: 0xfedcba9876543210,
		Duration: uint64(1975 * time.Microsecond), End: testcycle.Opened.Add(time.Second).UnixNano(),
	})
	put(table, 1, 0, true, exemplars.Exemplar{
		TraceLow: 7,
		Span:     8,
		Duration: uint64(12 * time.Second),
		End:      testcycle.Opened.Add(1500 * time.Millisecond).UnixNano(),
	})
	x := exporterWith(t, func(c *Config) { c.Dialect, c.Exemplars, c.Graph, c.MaxEdges = dialect, table, graph, 10 })
	limits := roomForAll
	limits.Idle = 1 << 62 // the golden cycle is years old
	x.LimitTotals(limits)
	publish(x, golden(t).Seal())
	return x
}

// TestScrape_Golden pins the bytes of a response in each format and dialect, and with a service graph.
func TestScrape_Golden(t *testing.T) {
	for title, x := range map[string]*Exporter{
		"spanmetrics": goldenExporter(t, points.Spanmetrics, nil),
		"tempo":       goldenExporter(t, points.Tempo, nil),
		"graph":       goldenExporter(t, points.Tempo, &points.ServiceGraph{}),
		"conventions": goldenExporter(t, points.Conventions, nil),
	} {
		for name, accept := range map[string]string{
			"txt":         "text/plain;version=0.0.4",
			"openmetrics": "application/openmetrics-text;version=1.0.0",
			"binpb":       asProtobuf,
		} {
			body, _ := ask(t, x, accept, "")
			compareGolden(t, title+"."+name, body)
		}
	}
	body, _ := ask(t, goldenExporter(t, points.Spanmetrics, nil), asProtobuf, "")
	var shown []json.RawMessage
	for _, name := range []string{callsName, durationsName} {
		text, err := protojson.Marshal(families(t, body)[name])
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, text)
	}
	text, err := json.MarshalIndent(shown, "", "  ") // the spaces of protojson differ between runs
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "spanmetrics.json", append(text, '\n'))
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
		t.Fatalf("read golden answer: %v; run the test with -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs: %d bytes, want %d; see what -update changes in it:\n%s", name, len(got),
			len(want), got)
	}
}

// An exemplar stays until the next one, on the classic and native bucket that counts it.
func TestExemplars_StayUntilNext(t *testing.T) {
	x := goldenExporter(t, points.Spanmetrics, nil)
	sealed := golden(t).Seal()
	sealed.Cycle = 2 // a cycle without exemplars
	publish(x, later(sealed, testcycle.Width))
	for labels, m := range seriesOf(t, scraped(t, x)[durationsName]) {
		h, onBuckets := m.GetHistogram(), 0
		for i, b := range h.GetBucket() {
			if e := b.GetExemplar(); e != nil {
				onBuckets++
				if e.GetValue() > b.GetUpperBound() || i > 0 && e.GetValue() <= testBounds[i-1] {
					t.Errorf("%s: %v s in the bucket up to %v s", labels, e.GetValue(), b.GetUpperBound())
				}
			}
		}
		want := 0
		if m.GetLabel()[0].GetValue() == "shop" {
			want = 1
		}
		if onBuckets != want || len(h.GetExemplars()) != want {
			t.Errorf("%s has %d exemplars on classic buckets and %d of native ones, want %d", labels,
				onBuckets,
				len(h.GetExemplars()), want)
		}
	}
}

// Prometheus rejects an exemplar that is not newer, in milliseconds, than the last one of the same
// series. A client whose clock is an hour off costs no exemplar of later cycles.
func TestExemplars_InOrderDespiteSkewedClocks(t *testing.T) {
	table := exemplars.New(8)
	x := exporterWith(t, func(c *Config) { c.Exemplars = table })
	last, now := time.Time{}, time.Now()
	for i := range 20 {
		c := newCycle(t)
		key := c.Key(c.Origin(span.Origin{Service: "web"}), span.Key{Service: "web", Operation: "op"})
		c.Add(0, key, 0, 1000, 0, 1)
		sealed := c.Seal()
		later(sealed, now.Sub(sealed.End)+time.Duration(i)*testcycle.Width)
		sealed.Cycle = uint64(i + 1)
		ahead := []time.Duration{time.Hour, -time.Hour, 0}[i%3]
		put(table, sealed.Cycle, key, false, exemplars.Exemplar{
			TraceLow: 1, Span: uint64(i + 1), Duration: 1000,
			End: sealed.Start.Add(time.Second + ahead).UnixNano(),
		})
		publish(x, sealed)
		for _, m := range seriesOf(t, scraped(t, x)[durationsName]) {
			e := m.GetHistogram().GetExemplars()[0]
			at := e.GetTimestamp().AsTime().Truncate(time.Millisecond)
			if id := e.GetLabel()[1].GetValue(); id != fmt.Sprintf("%016x", i+1) || !at.After(last) ||
				at.After(sealed.End) {
				t.Errorf("cycle %d until %v has span %s at %v, the one before %v", i, sealed.End, id, at, last)
			}
			last = at
		}
	}
}
