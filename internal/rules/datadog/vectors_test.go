package datadog_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// TestClientRules_Vectors: client/rules and this package count the same spans of a
// trace under the same keys, once names are normalized. A missing span kind counts as internal
// here.
func TestClientRules_Vectors(t *testing.T) {
	file, err := os.ReadFile("../../../client/rules/testdata/spans.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name      string
		PeerTags  []string `json:"peer_tags"`
		SpanKinds []string `json:"span_kinds"`
		Trace     []map[string]any
		Snapshots []struct {
			Key           string
			Duration, End int64
			Flags         uint8
			Weight        float64
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(file))
	decoder.UseNumber()
	if err := decoder.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		for _, s := range v.Trace {
			for _, name := range []string{"span_id", "parent_id", "start", "duration", "error"} {
				s[name], _ = s[name].(json.Number).Int64()
			}
			if metrics, is := s["metrics"].(map[string]any); is {
				for name := range metrics {
					metrics[name], _ = metrics[name].(json.Number).Float64()
				}
			}
		}
		policy, ok := datadog.NewPolicy(v.PeerTags, v.SpanKinds, nil, datadog.Labels{})
		c := datadog.NewCounter()
		if err := c.Count(decode.FormatV04, encode(t, []any{v.Trace}), "", false, policy); err != nil || !ok {
			t.Fatalf("%s: %v", v.Name, err)
		}
		got := countedBy(t, c)
		if len(got) != len(v.Snapshots) {
			t.Errorf("%s: %d spans are counted, want %d", v.Name, len(got), len(v.Snapshots))
			continue
		}
		for i, want := range v.Snapshots {
			raw, _ := hex.DecodeString(want.Key)
			s := got[i]
			if normal(t, raw) != normal(t, []byte(s.key)) || int64(s.Duration) != want.Duration ||
				s.End != want.End || uint8(s.Flags) != want.Flags || s.Weight != want.Weight {
				t.Errorf("%s: counted\n%+v with %q, want\n%+v with %q", v.Name, s, normal(t, []byte(s.key)),
					want, normal(t, raw))
			}
		}
	}
}

// normal returns a normalized key.
func normal(t *testing.T, raw []byte) string {
	t.Helper()
	var k span.Key
	if err := wire.ReadKey(&k, raw); err != nil {
		t.Fatal(err)
	}
	if k.Kind == "" {
		k.Kind = "internal"
	}
	k.Normalize("")
	return string(wire.AppendKey(nil, &span.Key{
		Service:       k.Service,
		Operation:     k.Operation,
		Resource:      k.Resource,
		Type:          k.Type,
		Kind:          k.Kind,
		TraceRoot:     k.TraceRoot,
		HTTPStatus:    k.HTTPStatus,
		PeerTags:      k.PeerTags,
		GRPCStatus:    k.GRPCStatus,
		ServiceSource: k.ServiceSource,
		Synthetics:    k.Synthetics,
	}))
}
