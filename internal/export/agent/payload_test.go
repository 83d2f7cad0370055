package agent

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/payload"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
	"github.com/vmihailenco/msgpack/v5"
)

var update = flag.Bool("update", false, "rewrite the golden payloads")

// The golden file pins the bytes. A second file has their content as read by a msgpack library, for
// review.
func TestPayload_Golden(t *testing.T) {
	payloads := mustEncode(t, testcycle.Golden(), export.DefaultMaxPayloadBytes)
	if len(payloads) != 2 {
		t.Fatalf("%d payloads, want one an origin", len(payloads))
	}
	for i, p := range payloads {
		var generic map[string]any
		if err := msgpack.Unmarshal(p.Body, &generic); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(generic, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, fmt.Sprintf("payload-%d.msgpack", i), p.Body)
		compareGolden(t, fmt.Sprintf("payload-%d.json", i), append(text, '\n'))
	}
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
		t.Fatalf("read golden payload: %v; run the test with -update", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs: %d bytes, want %d; see what -update changes in it", name, len(got), len(want))
	}
}

func TestPayload_HasEveryLabel(t *testing.T) {
	p, err := payload.Decode(mustEncode(t, testcycle.Golden(), export.DefaultMaxPayloadBytes)[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	buckets := p.Stats
	p.Stats = nil
	if want := (&payload.Payload{
		Hostname:      "node-1",
		Env:           "prod",
		Version:       "1.2.3",
		Service:       "shop",
		Lang:          "java",
		TracerVersion: "1.50.0",
		RuntimeID:     "rid", ProcessTags: "entrypoint.name:shop", GitCommitSha: "abc",
	}); !reflect.DeepEqual(p, want) {
		t.Errorf("head %+v, want %+v", p, want)
	}
	if len(buckets) != 3 {
		t.Fatalf("%d buckets, want the earlier one and that of the cycle twice, for two types", len(buckets))
	}
	early, http, web := buckets[0], buckets[1], buckets[2]
	start := uint64(testcycle.Opened.UnixNano())
	if early.Start != start-uint64(testcycle.Width) || http.Start != start || web.Start != start ||
		web.Duration != uint64(testcycle.Width) {
		t.Errorf("buckets start at %d, %d, %d", early.Start, http.Start, web.Start)
	}
	g := web.Stats[0]
	g.OkSummary, g.ErrorSummary = nil, nil
	if want := (payload.Group{Labels: payload.Labels{
		Service: "shop", Name: "http.request", Resource: "GET /cart", Type: "web", SpanKind: "client",
		GRPCStatusCode: "0",
		HTTPMethod:     "GET",
		HTTPEndpoint:   "/cart",
		ServiceSource:  "m",
		HTTPStatusCode: 200,
		Synthetics:     true, IsTraceRoot: 2, PeerTags: []string{"db.name:carts", "peer.service:db"},
		AdditionalMetricTags: []string{"tenant:a"},
	}, Hits: 84, Errors: 2, TopLevelHits: 82, Duration: 2 * (40*1_000_000 + 25_000*780 + 250_000_000 +
		9_000_000_000)}); !reflect.DeepEqual(g, want) {
		t.Errorf("group %+v, want %+v", g, want)
	}
}

// tally counts payloads like a receiver, by origin, bucket and labels.
func tally(t *testing.T, payloads []*export.Payload) map[string][4]uint64 {
	t.Helper()
	counts := map[string][4]uint64{}
	for _, p := range payloads {
		decoded, err := payload.Decode(p.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range decoded.Stats {
			for _, g := range b.Stats {
				key := fmt.Sprint(decoded.Service, b.Start, g.Service, g.Name, g.Resource, g.Type)
				if _, twice := counts[key]; twice {
					t.Errorf("%s stands twice", key)
				}
				counts[key] = [4]uint64{g.Hits, g.Errors, g.TopLevelHits, g.Duration}
			}
		}
	}
	return counts
}

// Whichever drainer counted a span, and however small the payloads are, the payloads contain the
// same counts as a map. Their numbers of spans add up.
func TestPayload_AgainstMap(t *testing.T) {
	var c testcycle.Cycle
	want := map[string][4]uint64{}
	type key struct {
		registry.KeyID
		service string
		span.Key
	}
	var keys []key
	var origin registry.OriginID
	service := ""
	for i := range 300 {
		if i%100 == 0 {
			service = fmt.Sprint("main", i)
			origin = c.Origin(span.Origin{Service: service})
		}
		k := span.Key{
			Service: "s", Operation: "o", Resource: fmt.Sprint(i / 3),
			Type: []string{"", "web", "sql"}[i%3],
		}
		keys = append(keys, key{c.Key(origin, k), service, k})
	}
	const spans = 20_000
	for i := range spans {
		n, drainer := i*7919%len(keys), i%3
		after, ns := time.Duration(i%3-1)*testcycle.Width, uint64(i)*977
		flags := span.Flags(i % 4)
		k := keys[n]
		c.Add(drainer, k.KeyID, after, ns, flags, 1)
		key := fmt.Sprint(k.service, testcycle.Opened.Add(after).UnixNano(), k.Service, k.Operation,
			k.Resource, k.Type)
		counts := want[key]
		counts[0]++
		counts[1] += uint64(flags & span.Error)
		counts[2] += uint64(flags & span.TopLevel >> 1)
		counts[3] += ns
		want[key] = counts
	}
	for _, limit := range []int{export.DefaultMaxPayloadBytes, export.MinPayloadBytes / 2} {
		payloads := mustEncode(t, c.Seal(), limit)
		if got := tally(t, payloads); !reflect.DeepEqual(got, want) {
			t.Errorf("limit %d: %d groups, want %d, or other counts", limit, len(got), len(want))
		}
		var sum uint64
		for i, p := range payloads {
			sum += p.Spans
			if len(p.Body) > limit {
				t.Errorf("a payload of %d bytes, the limit is %d", len(p.Body), limit)
			}
			if got := sequence(t, p); got != uint64(i) {
				t.Errorf("payload %d has sequence %d", i, got)
			}
		}
		if sum != spans {
			t.Errorf("limit %d: %d spans in payloads, want %d", limit, sum, spans)
		}
		if small := limit < export.DefaultMaxPayloadBytes; small == (len(payloads) == 3) {
			t.Errorf("limit %d: %d payloads of 3 origins", limit, len(payloads))
		}
	}
}

func TestGroup_TooLargeIsUnencodable(t *testing.T) {
	var c testcycle.Cycle
	origin := c.Origin(span.Origin{Service: "web"})
	small := c.Key(origin, span.Key{Service: "s", Operation: "o", Resource: "r"})
	large := c.Key(origin,
		span.Key{Service: "s", Operation: "o", Resource: strings.Repeat("r", export.MinPayloadBytes)})
	c.Add(0, small, 0, 1, 0, 1)
	c.Add(0, large, 0, 1, 0, 1)
	c.Add(0, large, 0, 1, 0, 1)
	payloads, unencodable := encodeAll(newEncoder(), c.Seal(), export.MinPayloadBytes)
	if len(payloads) != 1 || payloads[0].Spans != 1 || unencodable != 2 {
		t.Errorf("%d payloads, %d spans unencodable", len(payloads), unencodable)
	}
}

// The largest group of a normalized key fits in the smallest payload limit.
func TestGroup_LargestFits(t *testing.T) {
	long := strings.Repeat("\u00e9", span.MaxResource)
	key := span.Key{
		Service:       long,
		Operation:     long,
		Resource:      long,
		Type:          long,
		Kind:          long,
		HTTPMethod:    long,
		HTTPEndpoint:  long,
		GRPCStatus:    long,
		ServiceSource: long,
		Synthetics:    true,
		TraceRoot:     span.TraceRootTrue,
		HTTPStatus:    599,
	}
	for range span.MaxPeerTags {
		key.PeerTags = append(key.PeerTags, long)
		key.AdditionalTags = append(key.AdditionalTags, long)
	}
	key.Normalize("go")
	origin := span.Origin{
		Host: long, Env: long, Version: long, Service: long, Lang: long, ProcessTags: long,
		RuntimeID: long,
	}
	origin.Normalize()
	var c testcycle.Cycle
	id := c.Key(c.Origin(origin), key)
	for value := 1.0; value < 1<<63; value *= 1.01 {
		c.Add(0, id, 0, uint64(value), 0, 1)
		c.Add(0, id, 0, uint64(value), span.Error, 1)
	}
	payloads := mustEncode(t, c.Seal(), export.MinPayloadBytes)
	if len(payloads) != 1 {
		t.Errorf("%d payloads", len(payloads))
	}
}

func TestEncoding_AllocatesOnlyPayloads(t *testing.T) {
	var c testcycle.Cycle
	origin := c.Origin(span.Origin{Service: "web"})
	for i := range 500 {
		key := c.Key(origin, span.Key{Service: "s", Operation: "o", Resource: fmt.Sprint(i), Kind: "server"})
		c.Add(0, key, 0, uint64(i)*1000, 0, 1)
	}
	m, sealed := &reused{encoder: newEncoder()}, c.Seal()
	m.all(sealed, export.DefaultMaxPayloadBytes)
	// The payload, its body and the slices that contain it, for any number of groups.
	if allocations := testing.AllocsPerRun(10, func() {
		m.all(sealed, export.DefaultMaxPayloadBytes)
	}); allocations > 10 {
		t.Errorf("%v allocations for 500 groups", allocations)
	}
}

// The buffer for groups does not grow beyond a payload, however many payloads the groups of an
// origin need.
func TestEncoding_BoundedByPayload(t *testing.T) {
	var c testcycle.Cycle
	origin := c.Origin(span.Origin{Service: "web"})
	for i := range 3000 {
		key := c.Key(origin,
			span.Key{Service: "s", Operation: "o", Resource: strings.Repeat("r", 1000) + fmt.Sprint(i)})
		c.Add(0, key, 0, uint64(i)*1000, 0, 1)
	}
	e := newEncoder()
	payloads, unencodable := encodeAll(e, c.Seal(), export.MinPayloadBytes)
	if len(payloads) < 20 || unencodable != 0 {
		t.Fatalf("%d payloads, %d spans in none", len(payloads), unencodable)
	}
	if size := e.groupWriter.Cap(); size > 3*export.MinPayloadBytes {
		t.Errorf("%d bytes reserved for payloads of %d", size, export.MinPayloadBytes)
	}
}

// Counts above the largest number of the format are capped.
func TestCounts_Saturate(t *testing.T) {
	var c testcycle.Cycle
	key := c.Key(c.Origin(span.Origin{Service: "web"}), span.Key{Service: "s", Operation: "o", Resource: "r"})
	for range 4 {
		c.Add(0, key, 0, math.MaxInt64, span.Error|span.TopLevel, 1<<62)
		c.Add(1, key, 0, math.MaxInt64, 0, 1<<62)
	}
	p, err := payload.Decode(mustEncode(t, c.Seal(), export.DefaultMaxPayloadBytes)[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	g := p.Stats[0].Stats[0]
	if g.Hits != math.MaxUint64 || g.Duration != math.MaxUint64 || g.Errors != math.MaxUint64 ||
		g.TopLevelHits != math.MaxUint64 {
		t.Errorf("%d hits, %d errors, %d top-level, %d ns", g.Hits, g.Errors, g.TopLevelHits, g.Duration)
	}
}

// Groups of one bucket that differ only in type or mapping get separate buckets, so that the
// agent can't merge them.
func TestGroup_AgentMergesNone(t *testing.T) {
	now := time.Now()
	one := aggregate.Group{
		Key:     span.Key{Type: "web"},
		Bucket:  now.Truncate(testcycle.Width).UnixNano(),
		Mapping: sketch.AgentMapping,
		Counts:  aggregate.Counts{Spans: 1},
	}
	for what, change := range map[string]func(*aggregate.Group){
		"resource": func(g *aggregate.Group) { g.Key.Resource = "r" },
		"bucket":   func(g *aggregate.Group) { g.Bucket -= int64(testcycle.Width) },
		"mapping":  func(g *aggregate.Group) { g.Mapping = sketch.Mapping{Gamma: 1.01} },
		"type":     func(g *aggregate.Group) { g.Key.Type = "db" },
	} {
		other := one
		change(&other)
		var m export.Merger
		rows := m.Merge(testcycle.Merged(t, now, one, other))
		if len(rows) != 2 {
			t.Fatalf("two groups that differ in their %s have %d rows", what, len(rows))
		}
		if sameBucket(&rows[0], &rows[1]) != (what == "resource") {
			t.Errorf("groups that differ in their %s share a bucket: %v", what, what != "resource")
		}
	}
}

// Datadog's test agent answers 400 if a group lacks one of these fields, even if the value is zero.
func TestGroup_HasFieldsOfClients(t *testing.T) {
	var c testcycle.Cycle
	c.Add(0, c.Key(c.Origin(span.Origin{Service: "web"}), span.Key{Service: "s"}), 0, 1, 0, 1)
	var p struct {
		Stats []struct{ Stats []map[string]any }
	}
	body := mustEncode(t, c.Seal(), export.DefaultMaxPayloadBytes)[0].Body
	if err := msgpack.Unmarshal(body, &p); err != nil {
		t.Fatal(err)
	}
	group := p.Stats[0].Stats[0]
	for _, field := range []string{
		"Service", "Name", "Resource", "Synthetics", "Hits", "Errors", "TopLevelHits", "Duration",
		"OkSummary", "ErrorSummary",
	} {
		if _, is := group[field]; !is {
			t.Errorf("a group without %s: %v", field, group)
		}
	}
}
