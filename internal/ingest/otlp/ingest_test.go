package otlp

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"google.golang.org/protobuf/encoding/protowire"
)

// wishes are the changeable features of an agent.
type wishes struct {
	mu      sync.Mutex
	now     receiver.Features
	changed chan struct{}
}

func newWishes() *wishes {
	return &wishes{now: receiver.Features{
		Stats: true, PeerTags: []string{"peer.service"},
		SpanKinds: []string{"server", "client"},
	}, changed: make(chan struct{})}
}

func (w *wishes) features() (receiver.Features, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.changed
}

func (w *wishes) change(to func(*receiver.Features)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to(&w.now)
	close(w.changed)
	w.changed = make(chan struct{})
}

// byAgent configures a server that counts by the agent's rules.
func byAgent(w *wishes) func(*Config, *aggregate.Config) {
	return func(c *Config, _ *aggregate.Config) {
		c.Semantics, c.Features, c.Counters = SemanticsDatadog, w.features, 1
	}
}

const mark = "\n\x1c\n\x12_dd.stats_computed\x12\x06\n\x04true"

// sayingCounted returns a request whose resource has the counted marker with a value.
func sayingCounted(value string, first, spans int) []byte {
	attribute := nested(nested(nil, 1, []byte("_dd.stats_computed")), 2, nested(nil, 1, []byte(value)))
	return append(exported("shop", first, spans, 1),
		nested(nil, 1,
			append(nested(nil, 1, nested(nil, 1, attribute)),
				scopeOf(exported("shop", first+spans, spans, 1))...))...)
}

// scopeOf returns the ScopeSpans message of a request with one resource.
func scopeOf(request []byte) (scope []byte) {
	eachField(request, func(_ protowire.Number, _ uint64, resource []byte) {
		eachField(resource, func(n protowire.Number, _ uint64, value []byte) {
			if n == 2 {
				scope = nested(nil, 2, value)
			}
		})
	})
	return scope
}

// TestAgentRules_SameSpansAndNames checks, for every encoding, that the spans that the agent would count are
// counted under the agent's names.
func TestAgentRules_SameSpansAndNames(t *testing.T) {
	h := newHarness(t, byAgent(newWishes()))
	plain, streams := h.client(false), h.client(true)
	if a := post(t, plain, exported("shop", 0, 10, 2)); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	if a := postGRPC(t, streams, framed(packed(exported("shop", 10, 10, 2)), true), headerGRPCEncoding,
		"gzip"); a.grpc != "0" {
		t.Errorf("answered %+v", a)
	}
	if a := send(t, plain, http.MethodPost, "/v1/traces", bytes.NewReader([]byte(inJSONText)), "Content-Type",
		mediaJSON); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	if a := post(t, plain, []byte("nonsense")); a.status != http.StatusBadRequest {
		t.Errorf("answered %+v", a)
	}
	h.stop()
	if h.rows["name 0"] != 10 || h.rows["name 1"] != 10 || h.rows["from JSON"] != 1 ||
		h.Stats().Requests["counted"] != 3 {
		t.Errorf("counted %v, %v", h.rows, h.Stats().Requests)
	}
}

// TestAgentRules_FollowAgentSettings checks that a change of the agent's span kinds takes effect. If the agent filters
// traces by tags, which the server can't do, it leaves all spans to the agent.
func TestAgentRules_FollowAgentSettings(t *testing.T) {
	w := newWishes()
	to := newCollector(t, false, nil)
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		byAgent(w)(c, a)
		forward(c, a)
		c.MarksCounted = true
	})
	client, first := h.client(false), 0
	sendOne := func() received {
		first += 10
		if a := post(t, client, exported("shop", first, 1, 1)); a.status != http.StatusOK {
			t.Fatalf("answered %+v", a)
		}
		return to.last()
	}
	if got := sendOne(); got.header.Get(headerComputedStats) != "yes" ||
		bytes.Count(got.body, []byte(mark)) != 1 {
		t.Errorf("%v, %q", got.header, got.body)
	}
	for _, change := range []func(*receiver.Features){
		func(f *receiver.Features) { f.FiltersByTags = true },
		func(f *receiver.Features) { f.FiltersByTags, f.PeerTags = false, []string{"span.kind"} },
		func(f *receiver.Features) { f.PeerTags, f.Stats = nil, false },
	} {
		before := h.agentPolicy.Load()
		if before == nil {
			w.change(func(f *receiver.Features) { *f = newWishes().now })
			eventually.True(t, "it counts again", func() bool { return h.agentPolicy.Load() != nil })
		}
		w.change(change)
		eventually.True(t, "it is left to the agent", func() bool { return h.agentPolicy.Load() == nil })
		if got := sendOne(); got.header.Get(headerComputedStats) != "" ||
			bytes.Contains(got.body, []byte(mark)) {
			t.Errorf("%v, %q", got.header, got.body)
		}
	}
	h.stop()
	if h.rows["name 0"] != 1 || h.Stats().Requests["not_wanted"] != 3 {
		t.Errorf("counted %v, %v", h.rows, h.Stats().Requests)
	}
}

// TestMarker_TakesPrecedenceOverHeader checks that the marker of a resource takes precedence over the header of the request,
// and that all spans without either are counted.
func TestMarker_TakesPrecedenceOverHeader(t *testing.T) {
	h := newHarness(t, byAgent(newWishes()))
	client, first := h.client(false), 0
	for _, c := range []struct {
		resource, header string
		counted          uint64 // a request with one span of an unmarked resource, and one of a marked resource
		result           string
	}{
		{"true", "", 1, "counted"},
		{"true", "yes", 0, "computed_by_client"},
		{"false", "", 2, "counted"},
		{"false", "yes", 1, "counted"},
		{"what", "false", 1, "counted"},
	} {
		first += 10
		before := h.Stats().Requests[c.result]
		if a := post(t, client, sayingCounted(c.resource, first, 1), headerComputedStats,
			c.header); a.status != http.StatusOK {
			t.Fatalf("answered %+v", a)
		}
		if h.Stats().Requests[c.result] != before+1 {
			t.Errorf("%+v: %v", c, h.Stats().Requests)
		}
	}
	h.stop()
	if h.rows["name 0"] != 5 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestMarker_WithoutHeader checks that spans of a marked resource are not counted either if a Collector did not pass on
// the header, and that the request is forwarded unchanged.
func TestMarker_WithoutHeader(t *testing.T) {
	to := newCollector(t, false, nil)
	h := newHarness(t, forwardTo(t, to.url()))
	client := h.client(false)
	partlyMarked := sayingCounted("true", 0, 1)
	allMarked := partlyMarked[len(exported("shop", 0, 1, 1)):]
	for i, c := range []struct {
		body   []byte
		result string
	}{{partlyMarked, "counted"}, {allMarked, "computed_by_client"}} {
		if a := post(t, client, c.body); a.status != http.StatusOK || h.Stats().Requests[c.result] != 1 {
			t.Fatalf("request %d: %+v, %v", i, a, h.Stats().Requests)
		}
		if got := to.last(); !bytes.Equal(got.body, c.body) {
			t.Errorf("request %d is forwarded as %q", i, got.body)
		}
	}
	h.stop()
	if h.rows["name 0"] != 1 || len(h.rows) != 1 {
		t.Errorf("counted %v", h.rows)
	}
}

// TestMarker_OnCountedRequests checks the counted marker of each resource of counted requests: of retries, with gzip,
// in JSON, and of samples. Uncounted requests have none.
func TestMarker_OnCountedRequests(t *testing.T) {
	for _, semantics := range []Semantics{SemanticsOTel, SemanticsDatadog} {
		to := newCollector(t, false, func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		forward := forwardTo(t, to.url())
		h := newHarness(t, func(c *Config, a *aggregate.Config) {
			byAgent(newWishes())(c, a)
			forward(c, a)
			c.Semantics, c.MarksCounted = semantics, true
		})
		client := h.client(false)
		says := func(what string, want bool) {
			t.Helper()
			got := to.last()
			body := got.body
			if got.header.Get("Content-Encoding") == "gzip" {
				var unpack bodies.Decompressor
				plain, err := unpack.Decompress(body, bodies.Gzip, &h.Bodies)
				if err != nil {
					t.Fatal(err)
				}
				body = bytes.Clone(plain.Bytes)
				plain.Release()
			}
			if n := bytes.Count(body, []byte(mark)); (n == 1) != want ||
				(got.header.Get(headerComputedStats) == "yes") != want {
				t.Errorf("%s: %s: %d marks, %v", semantics, what, n, got.header)
			}
		}
		body := exported("shop", 0, 5, 1)
		for _, want := range []int{http.StatusServiceUnavailable, http.StatusOK} {
			if a := post(t, client, body); a.status != want {
				t.Errorf("answered %+v", a)
			}
			says("a try", true)
		}
		if a := post(t, client, packed(exported("shop", 10, 5, 1)), "Content-Encoding",
			"gzip"); a.status != http.StatusOK {
			t.Errorf("answered %+v", a)
		}
		says("gzip", true)
		if a := send(t, client, http.MethodPost, "/v1/traces", bytes.NewReader([]byte(inJSONText)),
			"Content-Type", mediaJSON); a.status != http.StatusOK {
			t.Errorf("answered %+v", a)
		}
		says("JSON", true)
		post(t, client, []byte("nonsense"))
		says("nonsense", false)
		h.admit.SetStatsWanted(false)
		if a := post(t, client, exported("shop", 30, 5, 1)); a.status != http.StatusOK {
			t.Errorf("answered %+v", a)
		}
		says("unwanted", false)
		h.stop()
		if h.rows["name 0"] != 10 || h.rows["from JSON"] != 1 {
			t.Errorf("%s: counted %v", semantics, h.rows)
		}
	}
}

// TestMarker_MemoryReservedBeforeCounting checks that a request without memory for the marker is refused before
// it is counted: with a retry if memory can become free, and without one otherwise.
func TestMarker_MemoryReservedBeforeCounting(t *testing.T) {
	to := newCollector(t, false, nil)
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		forward(c, a)
		c.MaxBody, c.MaxBodyBytes, c.MarksCounted, c.Counters = 128<<10, 256<<10, true, 1
	})
	small := exported("shop", 0, 100, 1)
	client := h.client(false)
	held := h.Bodies.Take(256<<10 - 2*len(small))
	if a := post(t, client, small); a.status != http.StatusServiceUnavailable {
		t.Errorf("answered %+v", a)
	}
	held.Release()
	if a := post(t, client, small); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	c := &call{BufferedRequest: h.NewRequest(httptest.NewRequest(http.MethodPost, "/", nil)), message: small}
	c.Body = &bodies.Body{Bytes: make([]byte, 256<<10-len(small))}
	w := <-h.workspaces
	if _, err := w.reader.read(small, false); err != nil {
		t.Fatal(err)
	}
	if _, no := h.selectSpans(c, w); no.result != ResultTooLarge ||
		!strings.Contains(no.Message, "--otlp-max-body-bytes") {
		t.Errorf("what never fits is answered %+v", no)
	}
	h.workspaces <- w
}

// TestAgentReader_AllocatesNothingPerSpan checks that the number of allocations per request depends on the
// resources, but not on the spans.
func TestAgentReader_AllocatesNothingPerSpan(t *testing.T) {
	s := &Server{config: Config{Semantics: SemanticsDatadog, Config: receiver.Config{Features: newWishes().features}}}
	s.loadFeatures()
	w, body := &workspace{reader: newAgentReader(&s.agentPolicy)}, exported("shop", 0, 500, 5)
	r := w.reader
	round := func() {
		if result, err := r.read(body, false); result != ResultCounted {
			t.Fatal(result, err)
		}
		for range r.Batches {
		}
		w.sample.Select(r.Request(), nil, true)
		w.release()
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 10 {
		t.Errorf("%v allocations a body of 500 spans", n)
	}
}

// TestTranslator_FollowsPeerTags checks that peer tags that the agent adds later become labels.
func TestTranslator_FollowsPeerTags(t *testing.T) {
	w := newWishes()
	s := &Server{config: Config{Semantics: SemanticsDatadog, Config: receiver.Config{Features: w.features}}}
	s.loadFeatures()
	r, body := newAgentReader(&s.agentPolicy), webRequest(1)
	keys := func() string {
		if result, err := r.read(body, false); result != ResultCounted {
			t.Fatal(result, err)
		}
		defer r.Release()
		var all []byte
		for _, batch := range r.Batches {
			for i := range batch.Snapshots {
				all = wire.AppendKey(all, batch.Labeler.Label(batch.Snapshots[i].Span))
			}
		}
		return string(all)
	}
	const tag = "db.namespace:shop"
	if strings.Contains(keys(), tag) {
		t.Error("a tag is a label without a request for it")
	}
	w.change(func(f *receiver.Features) { f.PeerTags = []string{"db.namespace"} })
	s.loadFeatures()
	if !strings.Contains(keys(), tag) {
		t.Error("a tag is no label that the agent asks for")
	}
}
