package traces

import (
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
