package datadog_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// randomSpan returns a span whose labels are likely to differ from those of another span in one
// detail: a byte, the length, or the type.
func randomSpan(rnd *rand.Rand, id int) map[string]any {
	label := func() string {
		return []string{
			"", "a", "A b", "ab", "b", "\xff", "200", "10.0.0.1",
			strings.Repeat("x", rnd.IntN(500)),
		}[rnd.IntN(9)]
	}
	meta, metrics := map[string]string{"span.kind": []string{
		"client", "internal", "server",
		"producer",
	}[rnd.IntN(4)]}, map[string]float64{}
	for _, name := range []string{
		"http.status_code", "grpc.code", "rpc.system", "_dd.base_service",
		"_dd.svc_src", "peer.service", "out.host", "db.name", "other",
	} {
		switch rnd.IntN(4) {
		case 0:
			meta[name] = label()
		case 1:
			metrics[name] = float64(rnd.IntN(600)) / 2
		}
	}
	return map[string]any{
		"service":   label(),
		"name":      label(),
		"resource":  label(),
		"type":      label(),
		"span_id":   id + 1,
		"parent_id": rnd.IntN(2) * id,
		"start":     int64(1e18), "duration": 1, "meta": meta, "metrics": metrics,
	}
}

// TestFingerprint_DecidesTheKey: random spans with equal fingerprints have equal keys, for all
// languages and policies.
func TestFingerprint_DecidesTheKey(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	few, ok := datadog.NewPolicy([]string{"out.host"}, []string{"client"}, nil, datadog.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	policies := []*datadog.Policy{policyOf(t), few, tracersPolicy(t)}
	var pool []map[string]any
	for range 500 {
		pool = append(pool, randomSpan(rnd, 0))
	}
	c, fingerprints, spans := datadog.NewCounter(), map[string]bool{}, 0
	for range 200 {
		var traces []any
		for range 20 {
			var trace []any
			for id := range 1 + rnd.IntN(8) {
				s := maps.Clone(pool[rnd.IntN(len(pool))])
				s["span_id"], s["parent_id"] = id+1, rnd.IntN(2)*id
				trace = append(trace, s)
			}
			traces = append(traces, trace)
		}
		lang, isTop := []string{"go", "python"}[rnd.IntN(2)], rnd.IntN(2) == 0
		if err := c.Count(decode.FormatV04, encode(t, traces), lang, isTop, policies[rnd.IntN(3)]); err != nil {
			t.Fatal(err)
		}
		countedBy(t, c) // compares the keys
		for _, batch := range c.Batches {
			for i := range batch.Snapshots {
				fingerprints[string(batch.FingerprintOf(&batch.Snapshots[i]))] = true
				spans++
			}
		}
	}
	if repeated := spans - len(fingerprints); repeated < 100 {
		t.Errorf("only %d of %d spans have the fingerprint of another one", repeated, spans)
	}
}
