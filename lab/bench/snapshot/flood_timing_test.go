package snapshot

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// BenchmarkFlood measures the CPU time of the whole process for one span of a flood, from the
// bytes of its key to a row. One operation is one span.
func BenchmarkFlood(b *testing.B) {
	for _, shape := range workload.Shapes() {
		b.Run(shape, func(b *testing.B) {
			t := newTimed(b, workload.Flood(shape, 100))
			p := t.connect("web")
			defer p.Close()
			t.handle(p, t.messages(roundSpans, false)) // warm-up: the flood begins when the label budgets are full
			spent, counted := time.Duration(0), 0
			for ; counted < b.N; counted += roundSpans {
				messages := t.messages(roundSpans, false)
				cost, err := measure.Of(func() error {
					t.handle(p, messages)
					t.settle()
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				spent += cost.CPU
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(spent)/float64(counted), "cpu-ns/span")
		})
	}
}
