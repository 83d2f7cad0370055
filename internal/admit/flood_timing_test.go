package admit

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/bench/measure"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// BenchmarkFlood says what a span of a flood takes, from the bytes of its key to a row, in CPU
// time of the whole process. One operation is one span.
func BenchmarkFlood(b *testing.B) {
	const spans, ahead = 64, 128
	for _, shape := range workload.Shapes() {
		b.Run(shape, func(b *testing.B) {
			h := newHarness(b, func(c *Config, _ *aggregate.Config) { c.Block = true })
			h.aggregator.Start()
			p := h.NewConnection(span.Origin{Service: "web", Lang: "go"}, 1)
			g, _ := workload.New(workload.Flood(shape, 100), 1)
			batch, bodies := make([]workload.Snapshot, spans), make([][]byte, 0, ahead)
			more := func() {
				for range ahead {
					g.Fill(batch, time.Now().UnixNano())
					bodies = append(bodies, bodyOf(len(batch), func(i int, frame []byte) []byte {
						return wire.AppendWhole(frame, wire.AppendKey(nil, batch[i].Key), batch[i].Duration, batch[i].End, 0, 1)
					}))
				}
			}
			publish := func() {
				if err := p.Publish(bodies[len(bodies)-1]); err != nil {
					b.Fatal(err)
				}
				bodies = bodies[:len(bodies)-1]
			}
			for more(); len(bodies) > 0; {
				publish() // what fills the budgets is no flood yet
			}
			spent, counted := time.Duration(0), 0
			for n := 0; n < b.N; {
				more()
				cost, err := measure.Of(func() error {
					for ; len(bodies) > 0; n += spans {
						publish()
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
				spent += cost.CPU
				counted += ahead * spans
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(spent)/float64(counted), "cpu-ns/span")
			h.stop(p)
		})
	}
}
