package otlp

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// BenchmarkEncode is what a cycle of a thousand series takes, merged already.
func BenchmarkEncode(b *testing.B) {
	for name, d := range map[string]points.Config{"spanmetrics": withAll(), "datadog": asDatadog} {
		b.Run(name, func(b *testing.B) {
			sealed := many(1000).Seal()
			var m flush.Merger
			rows, e, bytes := m.Merge(sealed), newEncoder(d, "", nil), 0
			b.ReportAllocs()
			for range b.N {
				bytes = 0
				e.encode(sealed, rows, flush.DefaultMaxPayloadBytes,
					func(body []byte, _ uint64, _ *totals.Said) {
						bytes += len(body)
					})
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
