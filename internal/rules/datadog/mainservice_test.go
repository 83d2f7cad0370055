package datadog_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestMainService_InvalidUTF8: a main service that is not valid UTF-8 is repaired in reused
// memory. It must not change when later spans are counted, and traces with the same service share a
// batch.
func TestMainService_InvalidUTF8(t *testing.T) {
	for name, policy := range map[string]*datadog.Policy{"agent": policyOf(t), "tracer": tracersPolicy(t)} {
		c := datadog.NewCounter()
		for round := range 4 { // later rounds reuse memory
			traces := webTraces(40)
			for _, trace := range traces {
				for i := range trace {
					s := &trace[i]
					s.Meta = maps.Clone(s.Meta)
					switch {
					case i > 0:
						s.Meta["db.name"] = fmt.Sprintf("orders-of-\xff-in-round-%d", round)
					case name == "agent":
						s.Meta["_dd.base_service"] = "shop-of-\xff-a-long-name"
					default:
						s.Service = "shop-of-\xff-a-long-name"
					}
				}
			}
			if err := c.Count(decode.FormatV04, encode(t, traces), "go", true, policy); err != nil {
				t.Fatal(err)
			}
			var services []string
			c.Batches(func(service string, _ *span.Batch) bool {
				services = append(services, service)
				return true
			})
			want := map[string]string{
				"agent":  "shop-of-_-a-long-name",
				"tracer": "shop-of-\uFFFD-a-long-name",
			}[name]
			if !slices.Equal(services, []string{want}) {
				t.Errorf("%s: the main services are %q, want %q", name, services, want)
			}
		}
	}
}
