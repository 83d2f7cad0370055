package datadog

import (
	"testing"

	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/vmihailenco/msgpack/v5"
)

func policyOf(t testing.TB) *rules.Policy {
	t.Helper()
	policy, ok := rules.NewPolicy([]string{"db.name", "out.host"},
		[]string{"client", "consumer", "producer", "server"}, nil, rules.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	return policy
}

// bodyOf returns a body of v0.4 with traces of one server span each. Every other trace is unsampled.
func bodyOf(t testing.TB, count int, start int64) []byte {
	t.Helper()
	var all []any
	for i := range count {
		all = append(all, []any{map[string]any{
			"service":  "shop",
			"name":     "http.request",
			"resource": "GET /",
			"trace_id": 7,
			"span_id":  10,
			"start":    start,
			"duration": 1000,
			"meta":     map[string]string{"span.kind": "server"},
			"metrics":  map[string]float64{"_sampling_priority_v1": float64(1 - i%2)},
		}})
	}
	body, err := msgpack.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
