package agent

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/testcycle"
)

// BenchmarkEncode encodes 2048 aggregates with one, twenty or two hundred spans each.
func BenchmarkEncode(b *testing.B) {
	for _, spans := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("spans=%d", spans), func(b *testing.B) {
			random := rand.New(rand.NewPCG(7, 8))
			var c testcycle.Cycle
			origin := c.Origin(span.Origin{Service: "web", Env: "prod"})
			for i := range 2048 {
				key := c.Key(origin, span.Key{
					Service:   fmt.Sprint("service-", i%4),
					Operation: "http.request",
					Resource:  fmt.Sprint("GET /", i),
					Type:      "web", Kind: "server", HTTPStatus: 200, TraceRoot: span.TraceRootTrue,
				})
				for range spans {
					flags := span.TopLevel
					if random.IntN(20) == 0 {
						flags |= span.Error
					}
					c.Add(0, key, 0, uint64(1e6+20e6*random.ExpFloat64()), flags, 1)
				}
			}
			m, sealed, size := &reused{encoder: newEncoder()}, c.Seal(), 0
			b.ReportAllocs()
			for b.Loop() {
				payloads, _ := m.all(sealed, export.DefaultMaxPayloadBytes)
				size = len(payloads[0].Body)
			}
			b.ReportMetric(float64(size), "payload_bytes")
		})
	}
}
