package otlp

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
)

// BenchmarkEncode encodes a merged cycle with a thousand series.
func BenchmarkEncode(b *testing.B) {
	for name, d := range map[string]points.Config{"spanmetrics": withAll(), "datadog": asDatadog} {
		b.Run(name, func(b *testing.B) {
			sealed := many(1000).Seal()
			var m export.Merger
			e, bytes := testEncoder(d, "", nil), 0
			c := &export.Cycle{Sealed: sealed, Rows: m.Merge(sealed), Limit: export.DefaultMaxPayloadBytes}
			b.ReportAllocs()
			for range b.N {
				bytes = 0
				e.encode(c, func(r *request) { bytes += len(r.body) })
			}
			b.ReportMetric(float64(bytes), "bytes")
		})
	}
}
