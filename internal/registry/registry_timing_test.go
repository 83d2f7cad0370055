package registry_test

import (
	"fmt"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// BenchmarkFlood admits keys that have four labels over their budgets, and get no row.
func BenchmarkFlood(b *testing.B) {
	r, origin := one(b, func(c *registry.Config) {})
	keys := make([]span.Key, 1<<14)
	for i := range keys {
		keys[i] = span.Key{
			Service: fmt.Sprintf("service-%016x", i), Operation: fmt.Sprintf("operation.%016x", i),
			Resource: fmt.Sprintf("GET /api/v1/orders/%016x", i), Type: "http", Kind: "client",
			TraceRoot: span.TraceRootFalse, PeerTags: []string{fmt.Sprintf("peer.hostname:%016x", i)},
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Admit(origin, &keys[i%len(keys)])
	}
}
