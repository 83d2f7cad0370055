package traces

import (
	"io"
	"log/slog"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/DataDog/datadog-agent/pkg/trace/api"
	"github.com/DataDog/datadog-agent/pkg/trace/info"
	"github.com/DataDog/datadog-agent/pkg/trace/stats"
	"github.com/DataDog/datadog-go/v5/statsd"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// BenchmarkBody is one request from its bytes to its statistics: by our counter, up
// to the batch that a ring takes, and by the agent's receiver and concentrator.
func BenchmarkBody(b *testing.B) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	o := makeOracle()
	policy := agentPolicy(b, o.conf)
	for _, format := range []traces.Format{traces.FormatV04, traces.FormatV05, traces.FormatV1} {
		rnd := rand.New(rand.NewPCG(1, 2))
		now := time.Now()
		p := &fakePayload{}
		spans := 0
		for spans < 1000 {
			trace := randomTrace(rnd, now)
			p.traces, p.origins = append(p.traces, trace), append(p.origins, "")
			spans += len(trace)
		}
		body := formats[format](p, rnd)
		c := traces.NewCounter()
		run := func(name string, count func()) {
			b.Run(format.String()+"/"+name, func(b *testing.B) {
				before := used(b)
				for b.Loop() {
					count()
				}
				b.ReportMetric(float64(used(b)-before)/float64(spans*b.N), "cpu-ns/span")
			})
		}
		run("ours", func() {
			if err := c.Count(format, body, "go", true, policy); err != nil {
				b.Fatal(err)
			}
		})
		concentrator := stats.NewConcentrator(o.conf, noStats{}, now.Add(-2*time.Hour), &statsd.NoOpClient{})
		ts := info.NewReceiverStats(false).GetTagStats(info.Tags{})
		run("agent", func() {
			o.agent.Concentrator = concentrator
			tp, err := decode(format, body, "go")
			if err != nil {
				b.Fatal(err)
			}
			o.agent.ProcessV1(&api.PayloadV1{Source: ts, TracerPayload: tp, ClientComputedTopLevel: true})
		})
	}
}

// used is the processor's time that this process has used.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
