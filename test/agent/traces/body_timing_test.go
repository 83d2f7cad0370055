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
	datadog "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	dd "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/lab/bench"
)

// BenchmarkBody measures a request from its bytes to its statistics: with the daemon's counter, up to
// the batch for the ring, and with the agent's receiver and concentrator. The requests are recorded
// ones of tracers, and random ones whose spans have about twenty random tags each, with almost no
// common keys.
func BenchmarkBody(b *testing.B) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	for _, format := range []datadog.Format{datadog.FormatV04, datadog.FormatV05, datadog.FormatV1} {
		body, lang, spans := recordedBody(b, format)
		b.Run(format.String()+"/recorded", func(b *testing.B) { countBeside(b, format, body, lang, spans) })
		body, spans = randomBody(format)
		b.Run(format.String()+"/random", func(b *testing.B) { countBeside(b, format, body, "go", spans) })
	}
}

// recordedBody returns the recorded request of a tracer and the tracer's language.
func recordedBody(b *testing.B, format datadog.Format) (body []byte, lang string, spans int) {
	r, spans, err := bench.Request(format.String(), time.Now())
	if err != nil {
		b.Fatal(err)
	}
	if body, err = io.ReadAll(r.Body); err != nil {
		b.Fatal(err)
	}
	return body, r.Header.Get("Datadog-Meta-Lang"), spans
}

func randomBody(format datadog.Format) (body []byte, spans int) {
	rnd, now := rand.New(rand.NewPCG(1, 2)), time.Now()
	p := &fakePayload{}
	for spans < 1000 {
		trace := randomTrace(rnd, now)
		p.traces, p.origins = append(p.traces, trace), append(p.origins, "")
		spans += len(trace)
	}
	return formats[format](p, rnd), spans
}

// countBeside counts a body with the given number of spans with both implementations.
func countBeside(b *testing.B, format datadog.Format, body []byte, lang string, spans int) {
	o := makeOracle()
	policy, c := agentPolicy(b, o.conf), dd.NewCounter()
	run := func(name string, count func() error) {
		b.Run(name, func(b *testing.B) {
			before := used(b)
			for b.Loop() {
				if err := count(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(used(b)-before)/float64(spans*b.N), "cpu-ns/span")
		})
	}
	run("ours", func() error { return c.Count(format, body, lang, true, policy) })
	o.agent.Concentrator = stats.NewConcentrator(o.conf, noStats{}, time.Now().Add(-2*time.Hour),
		&statsd.NoOpClient{})
	ts := info.NewReceiverStats(false).GetTagStats(info.Tags{})
	run("agent", func() error {
		tp, err := decode(format, body, lang)
		if err == nil {
			o.agent.ProcessV1(&api.PayloadV1{Source: ts, TracerPayload: tp, ClientComputedTopLevel: true})
		}
		return err
	})
}

// used returns the processor time that this process has used.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
