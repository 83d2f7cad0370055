package datadog_test

import (
	"maps"
	"slices"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestAMainServiceIsItsBatchsOwn also where it is no UTF-8, so that its text is made: whatever texts
// are made of later spans, it stays, and is one for all traces that have it.
func TestAMainServiceIsItsBatchsOwn(t *testing.T) {
	for name, policy := range map[string]*datadog.Policy{"agent": policyOf(t), "tracer": tracersPolicy(t)} {
		traces := webTraces(40)
		for _, trace := range traces {
			for i := range trace {
				s := &trace[i]
				s.Meta = maps.Clone(s.Meta)
				s.Service = "shop-of-\xff-a-long-name"
				if name == "agent" {
					s.Meta["_dd.base_service"] = s.Service
				}
				s.Meta["db.name"], s.Meta["peer.service"] = "orders-\xff", "other\xff-another"
			}
		}
		c := datadog.NewCounter()
		if err := c.Count(decode.FormatV04, encode(t, traces), "go", true, policy); err != nil {
			t.Fatal(err)
		}
		var services []string
		c.Batches(func(service string, _ *span.Batch) bool {
			services = append(services, service)
			return true
		})
		want := map[string]string{"agent": "shop-of-_-a-long-name", "tracer": "shop-of-\uFFFD-a-long-name"}[name]
		if !slices.Equal(services, []string{want}) {
			t.Errorf("%s: the main services are %q, want %q", name, services, want)
		}
	}
}
