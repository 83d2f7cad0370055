package datadog_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
)

// randomSpan has labels of which each is likely to differ from that of another span by
// little: in one place, in length, in what it was written as.
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

// TestACachedKeyIsTheKeyThatWouldBeMade: a counter that remembers keys makes of each body what one makes that
// has met none, whatever language and policy came before.
func TestACachedKeyIsTheKeyThatWouldBeMade(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	few, ok := datadog.NewPolicy([]string{"out.host"}, []string{"client"}, nil, datadog.Labels{})
	if !ok {
		t.Fatal("refused")
	}
	policy := []*datadog.Policy{policyOf(t), few}
	c := datadog.NewCounter()
	for range 60 {
		var traces []any
		for range 20 {
			var spans []any
			for id := range 1 + rnd.IntN(8) {
				spans = append(spans, randomSpan(rnd, id))
			}
			traces = append(traces, spans)
		}
		body, w, lang, top := encode(t, traces), policy[rnd.IntN(2)], []string{
			"go",
			"python",
		}[rnd.IntN(2)], rnd.IntN(2) == 0
		fresh := datadog.NewCounter()
		if a, b := c.Count(decode.FormatV04, body, lang, top, w), fresh.Count(decode.FormatV04, body, lang,
			top, w); a != nil || b != nil {
			t.Fatal(a, b)
		}
		same(t, c, fresh)
		fresh = datadog.NewCounter()
		if c.Count(decode.FormatV04, body, lang, top, w) != nil ||
			fresh.Count(decode.FormatV04, body, lang, top, w) != nil {
			t.Fatal("the second time")
		}
		same(t, c, fresh)
	}
}
