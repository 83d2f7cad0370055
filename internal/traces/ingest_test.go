package traces

import (
	"maps"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// ingested is a payload with one span, of this kind and with this status as a number.
func ingested(t *testing.T, kind string, status float64) []byte {
	t.Helper()
	return encode(t, map[string]any{"tracer_version": "otlp-1", "chunks": []any{map[string]any{"priority": 1, "spans": []any{ordered{
		"service", "shop", "name", "op", "resource", "r", "span_id", 7, "parent_id", 0, "start", int64(1e18), "duration", 1, "error", 0, "type", "custom",
		"meta",
		map[string]string{"span.kind": kind},
		"metrics",
		map[string]float64{"_dd.measured": 1, "http.status_code": status},
	}}}}})
}

// TestWhatTheIngestHasMadeIsReadAsThat: a kind that is not specified stays so, and a number is
// a status whatever it is. One counter tells both formats apart.
func TestWhatTheIngestHasMadeIsReadAsThat(t *testing.T) {
	c, policy := NewCounter(), policyOf(t)
	for _, test := range []struct {
		format Format
		kind   string
		status float64
		want   span.Key
	}{
		{FormatV07, "unspecified", 5, span.Key{Kind: "internal"}},
		{FormatIngest, "unspecified", 5, span.Key{Kind: "unspecified", HTTPStatus: 5}},
		{FormatV07, "client", 5, span.Key{Kind: "client"}},
		{FormatIngest, "client", 5, span.Key{Kind: "client", HTTPStatus: 5}},
		{FormatIngest, "what", 200, span.Key{Kind: "internal", HTTPStatus: 200}},
	} {
		if err := c.Count(test.format, ingested(t, test.kind, test.status), "", false, policy); err != nil {
			t.Fatal(err)
		}
		if origin := c.Origin(span.Origin{}); origin.TracerVersion != "otlp-1" {
			t.Errorf("%s: version %q", test.format, origin.TracerVersion)
		}
		for _, message := range c.Batches {
			w, err := wire.WalkSpans(message)
			if err != nil {
				t.Fatal(err)
			}
			var s wire.Snapshot
			var k span.Key
			for w.Next(&s) {
				if err := wire.ReadKey(&k, s.Key); err != nil {
					t.Fatal(err)
				}
			}
			if k.Kind != test.want.Kind || k.HTTPStatus != test.want.HTTPStatus {
				t.Errorf("%s of %q and %v is of kind %q with the status %d", test.format, test.kind, test.status, k.Kind, k.HTTPStatus)
			}
		}
	}
}

// TestAPolicyNamesItsTags: those that rules ask for, and those of peers.
func TestAPolicyNamesItsTags(t *testing.T) {
	named := map[string]bool{}
	for _, name := range policyOf(t).Tags() {
		named[name] = true
	}
	if !named["span.kind"] || !named["_dd.measured"] || !named["out.host"] || named[""] || named["component"] {
		t.Errorf("tags %v", named)
	}
}

// sentBy is a payload with one span, of a process with this host and environment, whose span
// says a base service.
func sentBy(t *testing.T, host, env, baseService string) []byte {
	t.Helper()
	meta := map[string]string{"span.kind": "server"}
	if baseService != "" {
		meta["_dd.base_service"] = baseService
	}
	return encode(t, map[string]any{"tracer_version": "otlp-1", "language_name": "go", "container_id": "c", "hostname": host, "env": env, "chunks": []any{map[string]any{
		"priority": 1,
		"spans": []any{ordered{
			"service", "shop", "name", "op", "resource", host, "span_id", 7, "parent_id", 0, "start", int64(1e18), "duration", 1, "error", 0, "type", "web", "meta", meta,
		}},
	}}})
}

// TestEachSenderOfARequestHasItsOwn: payloads stand one behind the other, and those of senders
// that nothing tells apart, perhaps because what would is cut off, are one batch.
func TestEachSenderOfARequestHasItsOwn(t *testing.T) {
	long := strings.Repeat("x", span.MaxOriginField)
	var body []byte
	for _, one := range [][3]string{{"a", "e", ""}, {"b", "e", ""}, {"a", "e", ""}, {"a", "e", "base"}, {"a", "f", ""}, {long + "1", "e", ""}, {long + "2", "e", ""}} {
		body = append(body, sentBy(t, one[0], one[1], one[2])...)
	}
	c := NewCounter()
	for range 2 {
		if err := c.Count(FormatIngest, body, "", false, policyOf(t)); err != nil {
			t.Fatal(err)
		}
		got := map[span.Origin]int{}
		for origin, message := range c.IngestBatches {
			w, err := wire.WalkSpans(message)
			if err != nil || got[origin] != 0 {
				t.Fatalf("%v: %+v has two batches", err, origin)
			}
			got[origin] = w.Len()
		}
		of := func(host, env, service string) span.Origin {
			return span.Origin{Host: host, Env: env, Service: service, Lang: "go", TracerVersion: "otlp-1", ContainerID: "c"}
		}
		want := map[span.Origin]int{of("a", "e", ""): 2, of("b", "e", ""): 1, of("a", "e", "base"): 1, of("a", "f", ""): 1, of(long, "e", ""): 2}
		if !maps.Equal(got, want) {
			t.Errorf("%+v, want\n%+v", got, want)
		}
		if c = c.Next(); len(c.origins) != 0 {
			t.Error("an origin is left")
		}
	}
	body = nil
	for i := range MaxBatches + 1 {
		if err := c.Count(FormatIngest, body, "", false, policyOf(t)); err != nil {
			t.Errorf("%d senders: %v", i, err)
		}
		body = append(body, sentBy(t, strings.Repeat("h", i+1), "", "")...)
	}
	if err := c.Count(FormatIngest, body, "", false, policyOf(t)); err == nil {
		t.Error("more senders were taken than there may be batches")
	}
}
