package oteltraces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"weak"

	"github.com/vmihailenco/msgpack/v5"
)

// agentSpan is a span of a payload, as its reader finds it.
type agentSpan struct {
	Service  string             `msgpack:"service"`
	Name     string             `msgpack:"name"`
	Resource string             `msgpack:"resource"`
	Type     string             `msgpack:"type"`
	TraceID  uint64             `msgpack:"trace_id"`
	SpanID   uint64             `msgpack:"span_id"`
	ParentID uint64             `msgpack:"parent_id"`
	Start    int64              `msgpack:"start"`
	Duration int64              `msgpack:"duration"`
	Error    int32              `msgpack:"error"`
	Meta     map[string]string  `msgpack:"meta"`
	Metrics  map[string]float64 `msgpack:"metrics"`
}

type agentPayload struct {
	Language  string `msgpack:"language_name"`
	Version   string `msgpack:"tracer_version"`
	Container string `msgpack:"container_id"`
	Env       string `msgpack:"env"`
	Host      string `msgpack:"hostname"`
	Chunks    []struct {
		Priority int         `msgpack:"priority"`
		Spans    []agentSpan `msgpack:"spans"`
	} `msgpack:"chunks"`
}

// wantedTags are some that statistics are made of.
var wantedTags = []string{"span.kind", "http.status_code", "_dd.measured", "_sample_rate", "env", "version", "db.name", "peer.service", "http.server_name", "rpc.grpc.status_code", "_dd.base_service"}

func translator(t testing.TB, wanted ...string) *Translator {
	t.Helper()
	c, err := NewTranslator(wanted)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// payloadsOf are the payloads of a request.
func payloadsOf(t testing.TB, c *Translator, resources ...madeResource) (all []agentPayload) {
	t.Helper()
	if err := c.Translate(request(resources...), false); err != nil {
		t.Fatal(err)
	}
	return decoded(t, c)
}

// decoded are the payloads of the last request.
func decoded(t testing.TB, c *Translator) (all []agentPayload) {
	t.Helper()
	for d := msgpack.NewDecoder(bytes.NewReader(c.Written())); ; {
		var p agentPayload
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestARequestBecomesPayloadsOfTraces: one for each resource with spans, with a chunk for each
// trace of it. test/agent compares what is in them with the agent's own code.
func TestARequestBecomesPayloadsOfTraces(t *testing.T) {
	c := translator(t, wantedTags...)
	spans := []madeSpan{
		{
			trace: 7, id: 1, name: "x", kind: kindServer, start: 5, end: 8, state: "ot=th:8", attributes: []attribute{
				{"http.request.method", "GET"}, {"http.route", "/carts"}, {"http.response.status_code", 200}, {"server.address", "shop"}, {"thread.id", 1},
			},
		},
		{trace: 8, id: 3, name: "other", start: 9, end: 8, code: codeError, attributes: []attribute{{"_dd.measured", 1}, {"env", "mine"}, {"peer.service", "own"}}},
		{trace: 7, id: 2, parent: 1, name: "y", kind: kindClient, attributes: []attribute{{"db.system", "PostgreSQL"}, {"db.statement", "SELECT 1"}, {"db.namespace", "shop"}}},
	}
	got := payloadsOf(t, c, madeResource{attributes: sdkResource("idle")}, madeResource{append(sdkResource("shop"), attribute{"peer.service", "its"}), [][]madeSpan{spans[:1], nil, spans[1:]}}, madeResource{nil, [][]madeSpan{spans[:1]}})
	if len(got) != 2 || len(got[0].Chunks) != 2 || len(got[1].Chunks) != 1 {
		t.Fatalf("%+v", got)
	}
	p := got[0]
	if p.Language != "java" || p.Version != "otlp-1.52.0" || p.Env != "prod" || !strings.HasPrefix(p.Container, "8f1d") || p.Chunks[0].Priority != keptByDefault {
		t.Errorf("%+v", p)
	}
	want := [][]agentSpan{
		{
			{
				"shop", "http.server.request", "GET /carts", "web", 7, 1, 0, 5, 3, 0,
				map[string]string{"span.kind": "server", "env": "prod", "version": "1.4.2", "http.server_name": "shop", "peer.service": "its"},
				map[string]float64{"http.status_code": 200, "_sample_rate": 0.5},
			},
			{
				"shop", "postgresql.query", "SELECT 1", "db", 7, 2, 1, 0, 0, 0,
				map[string]string{"span.kind": "client", "env": "prod", "version": "1.4.2", "db.name": "shop", "peer.service": "its"},
				map[string]float64{},
			},
		},
		{{
			"shop", "Internal", "other", "custom", 8, 3, 0, 9, 0, 1,
			map[string]string{"span.kind": "unspecified", "env": "mine", "version": "1.4.2", "peer.service": "own"},
			map[string]float64{"_dd.measured": 1},
		}},
	}
	want[0][1].Type = "sql"
	for i := range want {
		if !reflect.DeepEqual(p.Chunks[i].Spans, want[i]) {
			t.Errorf("%+v, want\n%+v", p.Chunks[i].Spans, want[i])
		}
	}
	if bare := got[1].Chunks[0].Spans[0]; bare.Service != "otlpresourcenoservicename" || got[1].Version != "otlp-" {
		t.Errorf("%+v", got[1])
	}
}

// TestWhatWasCountedBeforeIsNotTranslated: its resource says so, or else its request.
func TestWhatWasCountedBeforeIsNotTranslated(t *testing.T) {
	c := translator(t)
	spans := [][]madeSpan{{{name: "x"}}, {{name: "y"}, {name: "z"}}}
	check := func(what any, body []byte, isCounted bool, want int) {
		t.Helper()
		if err := c.Translate(body, isCounted); err != nil {
			t.Fatal(err)
		}
		if got := decoded(t, c); c.Counted() != want || (len(got) == 0) != (want > 0) {
			t.Errorf("%v, of a request that says %v: %d payloads, %d spans counted before", what, isCounted, len(got), c.Counted())
		}
	}
	for value, counted := range map[any]int{true: 3, "true": 3, "what": 3, 1: 3, false: 0, "false": 0, "FALSE": 0, "": 0} {
		body := request(madeResource{[]attribute{{"_dd.stats_computed", value}}, spans})
		check(value, body, false, counted)
		check(value, body, true, counted)
	}
	body := request(madeResource{nil, spans})
	check("nothing", body, false, 0)
	check("nothing", body, true, 3)
}

// TestWhichValueOfATagCounts where there is a text and a number: of each kind of tag the one
// that the agent's statistics read.
func TestWhichValueOfATagCounts(t *testing.T) {
	c := translator(t, "_sample_rate", "grpc.code", "http.status_code", "peer.service")
	both := func(name string) []attribute { return []attribute{{name, 2}, {name, "three"}} }
	for name, want := range map[string]string{
		"_sample_rate": "map[] map[_sample_rate:2]", "grpc.code": "map[grpc.code:three] map[]",
		"http.status_code": "map[http.status_code:three] map[http.status_code:2]", "peer.service": "map[peer.service:three] map[]",
	} {
		s := payloadsOf(t, c, madeResource{nil, [][]madeSpan{{{attributes: both(name)}}}})[0].Chunks[0].Spans[0]
		if got := fmt.Sprint(s.Meta, " ", s.Metrics); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	s := payloadsOf(t, c, madeResource{nil, [][]madeSpan{{{attributes: []attribute{{"grpc.code", 2}}}}}})[0].Chunks[0].Spans[0]
	if s.Metrics["grpc.code"] != 2 {
		t.Errorf("a status that is a number: %v", s.Metrics)
	}
}

// TestWhatIsNotTranslated: a list that would become a tag, what would be too long, and tags of
// too many attributes.
func TestWhatIsNotTranslated(t *testing.T) {
	c := translator(t, wantedTags...)
	list := attribute{"peer.service", submessage(nil, 5, nil)}
	for name, test := range map[string]struct {
		body []byte
		want error
	}{
		"a list":               {request(madeResource{nil, [][]madeSpan{{{attributes: []attribute{list}}}}}), ErrUnread},
		"a list of a resource": {request(madeResource{[]attribute{list}, [][]madeSpan{{{}}}}), ErrUnread},
		"a list of a scope": {submessage(nil, 1, submessage(nil, 2, append(submessage(nil, 1, submessage(nil, 3, list.encode())),
			submessage(nil, 2, nil)...))), ErrUnread},
		"a long name": {submessage(nil, 1, append(submessage(nil, 1, submessage(nil, 1, attribute{"service.name", strings.Repeat("s", 1<<16)}.encode())),
			submessage(nil, 2, bytes.Repeat(submessage(nil, 2, nil), 100))...)), ErrTooMuch},
		"no request": {[]byte{0x0a}, ErrUnread},
	} {
		if err := c.Translate(test.body, false); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.Written()) > 0 {
			t.Errorf("%s: there is a payload", name)
		}
	}
	var many []string
	for i := range maxLabels {
		many = append(many, fmt.Sprint("tag-", i))
	}
	if _, err := NewTranslator(many); err == nil {
		t.Error("too many tags were taken")
	}
	if _, err := NewTranslator(many[:maxLabels-int(agentLabels)]); err != nil {
		t.Error(err)
	}
}

// TestValuesOfTagsAreTheAgents, from its own rules.
func TestValuesOfTagsAreTheAgents(t *testing.T) {
	long := strings.Repeat("a", 300)
	for text, want := range map[string]string{
		"": "", "postgresql": "postgresql", "PostgreSQL": "postgresql", "a b": "a_b", "a  b__c": "a_b_c", "a_": "a", "_a": "_a", "!!": "",
		"a:/.-1": "a:/.-1", "ÄÖ": "äö", "a\xffb": "a_b", "a\uFFFDb": "a_b", "✓x": "_x", long: long[:200], "ẞ": "ẞ", "1a": "1a",
		strings.Repeat("a ", 150): strings.TrimSuffix(strings.Repeat("a_", 100), "_"), strings.Repeat("✓", 133) + "abcd": "_a",
	} {
		if got := string(appendTagValue(nil, text)); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestRatesAreReadOfTracestates: by the threshold, and by the power of older samplers.
func TestRatesAreReadOfTracestates(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "ot=th:c": 0.25, "ot=p:2": 0.25, "ot=p:0": 1, "ot=p:62": 0x1p-62, "ot=p:63": 0, "ot=p:x": 0, "ot=r:62;p:1": 0.5, "ot=p:1;th:c": 0.25, "what": 0, "x=y": 0,
	} {
		if got, ok := rateOf([]byte(text)); got != want && ok || ok != (want > 0) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
}

// TestAReleasedTranslatorHoldsNothing of the last body, and is as good as before.
func TestAReleasedTranslatorHoldsNothing(t *testing.T) {
	c := translator(t, wantedTags...)
	for _, traces := range []int{100, 6000} {
		last := func() weak.Pointer[byte] {
			body := slices.Clone(webRequest(traces))
			if err := c.Translate(body, false); err != nil {
				t.Fatal(err)
			}
			return weak.Make(&body[0])
		}()
		c.Release()
		runtime.GC()
		if last.Value() != nil {
			t.Errorf("%d traces: the last body is still held", traces)
		}
		if cap(c.written) > keptText {
			t.Errorf("%d bytes are kept", cap(c.written))
		}
		if len(c.Written()) > 0 {
			t.Error("there is a payload")
		}
	}
	if got := payloadsOf(t, c, madeResource{nil, [][]madeSpan{{{name: "x"}}}}); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestAWarmTranslatorAllocatesNothing a span.
func TestAWarmTranslatorAllocatesNothing(t *testing.T) {
	body, c := webRequest(100), translator(t, wantedTags...)
	round := func() {
		if err := c.Translate(body, false); err != nil {
			t.Fatal(err)
		}
	}
	round()
	if n := testing.AllocsPerRun(20, round); n > 0 {
		t.Errorf("%v allocations a body of 400 spans", n)
	}
}

// FuzzTranslate: whatever the bytes are, what comes out is msgpack, within its bound, and has
// each span of the request.
func FuzzTranslate(f *testing.F) {
	f.Add(webRequest(2))
	f.Add(request(madeResource{nil, [][]madeSpan{{{trace: 1, attributes: []attribute{{"http.status_code", 2.5}, {"_dd.stats_computed", true}}}}}}))
	c := translator(f, wantedTags...)
	f.Fuzz(func(t *testing.T, body []byte) {
		if c.Translate(body, false) != nil {
			return
		}
		if len(c.written) > TranslatedBytes(len(body)) {
			t.Fatalf("%d bytes of %d", len(c.written), len(body))
		}
		spans := c.Counted()
		for _, p := range decoded(t, c) {
			for _, chunk := range p.Chunks {
				spans += len(chunk.Spans)
			}
		}
		if spans != len(c.payload.records) {
			t.Fatalf("%d spans of %d", spans, len(c.payload.records))
		}
	})
}

// BenchmarkTranslate is what it costs to write a request as the agent's ingest would.
func BenchmarkTranslate(b *testing.B) {
	const traces = 128
	c, body := translator(b, wantedTags...), webRequest(traces)
	measured(b, 4*traces, len(body), func() {
		if err := c.Translate(body, false); err != nil {
			b.Fatal(err)
		}
	})
}
