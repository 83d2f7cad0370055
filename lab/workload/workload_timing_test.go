package workload

import "testing"

// BenchmarkFill measures the cost of generating a span, which must be small compared with the
// measurements that use it. One operation is one span.
func BenchmarkFill(b *testing.B) {
	names := Names()
	for _, shape := range Shapes() {
		names = append(names, Flood(shape, wholeFlood))
	}
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			g, err := New(name, 1)
			if err != nil {
				b.Fatal(err)
			}
			batch := make([]Snapshot, 64)
			b.ReportAllocs()
			for n := 0; n < b.N; n += len(batch) {
				g.Fill(batch, 1)
			}
		})
	}
}
